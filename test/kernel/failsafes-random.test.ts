// SPDX-License-Identifier: Apache-2.0
/** Random failsafe ports, and packets of ports that are alike: the loaded programs let be what the plain list of ports does, and nothing else.
 * Layer: test. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ANY_V4, ANY_V6, parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { FAILSAFE_PORTS } from '#lib/base/flags.ts'
import { isFailsafe, type Failsafe } from '#lib/policy/host.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { FailsafePort, Failsafes } from '#agent/compile/failsafes.ts'
import { bytesOf } from '../support/policy-packet.ts'
import { HOST } from './packet-policy.ts'
import type { PacketRunner } from './packet-runner.ts'
import { packetRunner, setUpNamespace } from './packet-runner.ts'
import type { ProgramName } from './packets/case.ts'
import { policy } from './packets/policies.ts'
import { families } from './packets/world.ts'

/** RUNS=3000 for a long look. */
const RUNS = Number(process.env['RUNS'] ?? 150)
const TCP = 6
const UDP = 17

const opened: PacketRunner[] = []
beforeAll(async () => {
  setUpNamespace()
  opened.push(await packetRunner({ redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }))
})
afterAll(() => opened.forEach((runner) => runner.close()))

/** Few, so that they meet; most in one slot of the compressed table. */
const port = fc.constantFrom(22, 22 + FAILSAFE_PORTS, 22 + 2 * FAILSAFE_PORTS, 22 + 60 * FAILSAFE_PORTS, 53, 65_535)
const protocol = fc.constantFrom(TCP, UDP)
const net = fc.constantFrom(
  undefined,
  ...['0.0.0.0/0', '::/0', '192.168.50.100/32', '192.168.50.64/26', '192.168.0.0/16', 'fd00:50::100/128', 'fd00:50::/64'].map(parseCidr),
)
const failsafePort: fc.Arbitrary<FailsafePort> = fc.record({ protocol, port: port.map(parsePort), net })
const ports = fc.array(failsafePort, { maxLength: 3 })

type Direction = 'ingress' | 'egress'
const other = (direction: Direction): Direction => (direction === 'ingress' ? 'egress' : 'ingress')

/** Between the node and a place outside: a SYN or a datagram. */
function packets(direction: Direction): fc.Arbitrary<Packet> {
  const ends = fc.constantFrom(...families.flatMap((f) => [f.client, f.directClient, f.stranger].map((addr) => [f.node, addr] as const)))
  return fc.record({ ends, protocol, sport: port, dport: port }).map(({ ends: [node, outside], ...rest }) => {
    const [src, dst] = direction === 'ingress' ? [outside, node] : [node, outside]
    return { ...rest, src: parseAddr(src), dst: parseAddr(dst), icmp: undefined }
  })
}

function listOf({ inbound, outbound }: Failsafes, direction: Direction): readonly Failsafe[] {
  const anywhere = [ANY_V4, ANY_V6].map((addr) => ({ addr, bits: 0 }))
  return (direction === 'ingress' ? inbound : outbound).flatMap(({ net: one, ...of }) =>
    (one === undefined ? anywhere : [one]).map((cidr) => ({ ...of, net: cidr })),
  )
}

/** Sent to such a port, or what one answers: no SYN is an answer, and where flows are known none begins with one. */
function isSpared(of: Failsafes, packet: Packet, { direction, scope }: { direction: Direction; scope: string }): boolean {
  if (isFailsafe(listOf(of, direction), packet, direction)) return true
  const asked = { ...packet, src: packet.dst, dst: packet.src, sport: packet.dport, dport: packet.sport }
  return scope === 'doNotTrack' && packet.protocol !== TCP && isFailsafe(listOf(of, other(direction)), asked, other(direction))
}

test.each([
  ['what untracked rules of XDP deny', 'untracked', 'doNotTrack'],
  ['what untracked rules deny on its way in', 'from_host', 'doNotTrack'],
  ['what untracked rules deny on its way out', 'to_host', 'doNotTrack'],
  ['what rules of flows deny on its way in', 'from_host', 'normal'],
  ['what rules of flows deny on its way out', 'to_host', 'normal'],
] as const satisfies readonly (readonly [string, ProgramName, string])[])(
  '%s: failsafe ports are spared, and nothing that is alike',
  { timeout: Math.max(60_000, RUNS * 200) },
  (_what, through, scope) => {
    const direction = through === 'to_host' ? 'egress' : 'ingress'
    const deny = [{ action: 'deny' }] as const
    const open = policy('open', { of: HOST, ingress: [{}], egress: [{}] })
    const closed = policy('closed', { of: HOST, ingress: deny, egress: deny, scope })
    const policies = scope === 'normal' ? [closed] : [closed, open]
    fc.assert(
      fc.property(fc.record({ inbound: ports, outbound: ports }), fc.array(packets(direction), { minLength: 20 }), (failsafes, some) => {
        const steps = some.map((packet, at) => {
          const action = isSpared(failsafes, packet, { direction, scope }) ? ('pass' as const) : ('drop' as const)
          return { say: `packet ${at}`, through, packet: bytesOf(packet), action }
        })
        for (const runner of opened) expect(runner.run({ name: 'random', given: { policies, failsafes }, steps })).toBeUndefined()
      }),
      { numRuns: RUNS },
    )
  },
)

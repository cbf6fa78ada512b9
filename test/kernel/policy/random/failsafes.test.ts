// SPDX-License-Identifier: Apache-2.0
/** Random failsafe ports, and packets of ports that are alike: the loaded programs let be what the evaluator does,
 * and nothing else. Layer: test. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { FAILSAFE_PORTS } from '#lib/base/bpf-constants.ts'
import type { FailsafePort, Failsafes } from '#lib/model/failsafe.ts'
import type { Direction } from '#lib/model/policy.ts'
import { isFailsafe, isFailsafeAnswer } from '#lib/policy/host.ts'
import { TCP, UDP } from '#lib/policy/packet.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { bytesOf } from '../../../support/policy-packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketRunner } from '../../../../testkit/packets/runner.ts'
import { packetRunner, setUpNamespace } from '../../../../testkit/packets/runner.ts'
import type { ProgramName } from '../../../../testkit/packets/case.ts'
import { policy } from '../../packets/policy/policies.ts'
import { families } from '../../../../testkit/packets/cluster.ts'

/** RUNS=3000 for a long look. */
const RUNS = Number(process.env['RUNS'] ?? 150)

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

interface Sent {
  readonly packet: Packet
  /** of TCP */
  readonly flags: 'S' | 'A'
  /** the node is the end that is judged, not a pod of its own */
  readonly isNodes: boolean
}

/** Between the node, or what is behind it, and a place outside. */
function packets(direction: Direction): fc.Arbitrary<Sent> {
  const inside = direction === 'ingress' ? (['node', 'pod'] as const) : (['node'] as const)
  const ends = families.flatMap((f) =>
    [f.client, f.directClient, f.stranger].flatMap((outside) => inside.map((own) => ({ own: f[own], outside, isNodes: own === 'node' }))),
  )
  const flags = fc.constantFrom('S' as const, 'A' as const)
  return fc
    .record({ of: fc.constantFrom(...ends), flags, protocol, sport: port, dport: port })
    .map(({ of: { own, outside, isNodes }, flags: set, ...rest }) => {
      const [src, dst] = direction === 'ingress' ? [outside, own] : [own, outside]
      return { packet: { ...rest, src: parseAddr(src), dst: parseAddr(dst), icmp: undefined }, flags: set, isNodes }
    })
}

/** Sent to such a port, or what one answers: no SYN is an answer, and where flows are known none begins with one. */
function isSpared(of: Failsafes, { packet, flags, isNodes }: Sent, { direction, scope }: { direction: Direction; scope: string }): boolean {
  const mayAnswer = scope === 'doNotTrack' && (packet.protocol === UDP || flags === 'A')
  return isNodes && (isFailsafe(of, packet, direction) || (mayAnswer && isFailsafeAnswer(of, packet, direction)))
}

test.each([
  ['what untracked rules of XDP deny', 'untracked', 'doNotTrack'],
  ['what untracked rules deny on its way in', 'from_host', 'doNotTrack'],
  ['what untracked rules deny on its way out', 'to_host', 'doNotTrack'],
  ['what rules before translation deny', 'from_host', 'preDNAT'],
  ['what rules of flows deny on its way in', 'from_host', 'forward'],
  ['what rules of flows deny on its way out', 'to_host', 'forward'],
] as const satisfies readonly (readonly [string, ProgramName, string])[])(
  '%s: failsafe ports are spared, and nothing that is alike',
  { timeout: Math.max(60_000, RUNS * 200) },
  (_what, through, scope) => {
    const direction = through === 'to_host' ? 'egress' : 'ingress'
    const deny = [{ action: 'deny' }] as const
    const open = policy('open', { of: HOST, ingress: [{}], egress: [{}] })
    const closed = policy('closed', { of: HOST, ingress: deny, egress: deny, scope })
    const policies = scope === 'forward' ? [closed] : [closed, open]
    fc.assert(
      fc.property(fc.record({ inbound: ports, outbound: ports }), fc.array(packets(direction), { minLength: 20 }), (failsafes, some) => {
        const steps = some.map((one, at) => {
          const action = isSpared(failsafes, one, { direction, scope }) ? ('pass' as const) : ('drop' as const)
          return { say: `packet ${at}`, through, packet: bytesOf(one.packet, one.flags), action }
        })
        for (const runner of opened) expect(runner.run({ name: 'random', given: { policies, failsafes }, steps })).toBeUndefined()
      }),
      { numRuns: RUNS },
    )
  },
)

// SPDX-License-Identifier: Apache-2.0
/** What packet cases cannot say: many packets in a second, and what routes and rules of the kernel say (of their
 * MTUs from 5.12 on). Layer: test. */
import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tcp, udp } from '../../testkit/packets/packet.ts'
import type { PacketRunner } from '../../testkit/packets/runner.ts'
import { packetRunner, setUpNamespace } from '../../testkit/packets/runner.ts'
import type { Step } from '../../testkit/packets/case.ts'
import { error, numbers } from './packets/icmp/errors.ts'
import type { Family } from '../../testkit/packets/cluster.ts'
import { at, families } from '../../testkit/packets/cluster.ts'

/** bpf/include/l3/icmp.h: ICMP errors and RSTs that one CPU makes in a second */
const ANSWERS_A_SECOND = 1000
const SECOND_MS = 1000
const ROUTE_MTU = 1300
const DEVICE_MTU = 1500
const PORT = 41000

const opened: PacketRunner[] = []

beforeAll(async () => {
  setUpNamespace()
  for (const f of families) {
    const { locked, unlocked, wide, refused } = places(f)
    const via = ['via', f.otherNode, 'dev', 'eth0']
    ip('route', 'add', locked, ...via, 'mtu', 'lock', String(ROUTE_MTU))
    ip('route', 'add', unlocked, ...via, 'mtu', String(ROUTE_MTU))
    ip('route', 'add', wide, ...via, 'mtu', 'lock', '9000')
    ip('route', 'add', refused, ...via)
    // to one pod this place is not
    ip(f.v4 ? '-4' : '-6', 'rule', 'add', 'from', f.pod, 'to', refused, 'lookup', '100')
    ip('route', 'add', 'unreachable', refused, 'table', '100')
  }
  opened.push(await packetRunner({ redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }))
})
afterAll(() => {
  for (const f of families) ip(f.v4 ? '-4' : '-6', 'rule', 'del', 'from', f.pod, 'lookup', '100')
  opened.forEach((runner) => runner.close())
})

function ip(...args: readonly string[]): void {
  execFileSync('ip', args)
}

/** Somewhere behind the underlay, each by a route of its own. */
function places({ v4 }: Family) {
  const at = (number: number): string => (v4 ? `10.20.0.${number}` : `fd00:20::${number}`)
  return { locked: at(5), unlocked: at(6), wide: at(7), refused: at(8) }
}

/** UDP of a pod, so long with all its headers. */
function long(f: Family, to: string, length: number): Uint8Array {
  return udp(at(f.pod, PORT), at(to, 80), { payload: new Uint8Array(length - (f.v4 ? 28 : 48)), df: true })
}

function tooBig(f: Family, packet: Uint8Array, mtu: number): Step {
  const out = error(f, { packet, to: f.pod, kind: numbers(f).tooBig, mtu })
  return { say: `longer than ${mtu}`, through: 'from_workload', packet, action: 'redirect', reason: 'DROP_TOO_BIG', out }
}

function fits(packet: Uint8Array): Step {
  return { say: 'as long as the way is wide', through: 'from_workload', packet, action: 'redirect' }
}

function wrong(name: string, steps: readonly Step[]): string | undefined {
  const [runner] = opened
  return runner === undefined ? 'not loaded' : runner.run({ name, given: {}, steps })
}

test.each(families)("$name: a route's own MTU counts where it is locked, as for what the kernel forwards", (f) => {
  const { locked } = places(f)
  expect(wrong('locked', [fits(long(f, locked, ROUTE_MTU)), tooBig(f, long(f, locked, ROUTE_MTU + 1), ROUTE_MTU)])).toBeUndefined()
})

test.each(families)('$name: the MTU of a route that is not locked does not count, as for what the kernel forwards', (f) => {
  const { unlocked } = places(f)
  const steps = [fits(long(f, unlocked, DEVICE_MTU)), tooBig(f, long(f, unlocked, DEVICE_MTU + 1), DEVICE_MTU)]
  expect(wrong('unlocked', steps)).toBeUndefined()
})

test.each(families)("$name: a route's MTU beyond its device's does not make the device wider", (f) => {
  const { wide } = places(f)
  expect(wrong('wide', [fits(long(f, wide, DEVICE_MTU)), tooBig(f, long(f, wide, DEVICE_MTU + 1), DEVICE_MTU)])).toBeUndefined()
})

test.each(families)('$name: rules that route by source count: a pod does not reach what its own table calls unreachable', (f) => {
  const { refused } = places(f)
  const from = (pod: string, action: Step['action']): Step => {
    return { say: pod, through: 'from_workload', packet: udp(at(pod, PORT), at(refused, 80)), action }
  }
  // passed to the kernel, which refuses it and says so
  expect(wrong('by source', [from(f.pod, 'pass'), from(f.secondPod, 'redirect')])).toBeUndefined()
})

test('a CPU answers 1,000 packets a second that no backend is there for, and is silent from the next on', async () => {
  const [runner] = opened
  runner?.run({ name: 'fill', given: {}, steps: [] })
  // TCP is answered by RST, UDP by ICMP: both count
  const refused = families.flatMap((f) => [
    tcp(at(f.client, PORT), at(f.vip, 80), { flags: 'S' }),
    udp(at(f.client, PORT), at(f.bareVip, 80)),
  ])
  execFileSync('taskset', ['-cp', '0', String(process.pid)]) // each CPU counts for itself
  const burst = async (): Promise<readonly (string | undefined)[]> => {
    await sleep(SECOND_MS + 50) // then a second begins with the first of them
    const begun = performance.now()
    const results = Array.from({ length: ANSWERS_A_SECOND + 1 }, (_, at) => runner?.send('from_host', refused[at % 4] ?? new Uint8Array()))
    // on a machine that was busy meanwhile it says nothing
    return performance.now() - begun < SECOND_MS ? results : burst()
  }
  for (const results of [await burst(), await burst()])
    expect([results.lastIndexOf('redirect'), results.indexOf('drop')]).toEqual([ANSWERS_A_SECOND - 1, ANSWERS_A_SECOND])
})

// SPDX-License-Identifier: Apache-2.0
/** What packet cases cannot say: many packets in a second, and what kernels from 5.12 on tell of routes. Layer: test. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tcp, udp } from '../support/packet.ts'
import type { PacketRunner } from './packet-runner.ts'
import { packetRunner, setUpNamespace } from './packet-runner.ts'
import { error, numbers } from './packets/errors.ts'
import { at, families } from './packets/world.ts'

/** bpf/include/icmp.h: ICMP errors and RSTs that one CPU makes in a second */
const ANSWERS_A_SECOND = 1000
const ROUTE_MTU = 1400

const opened: PacketRunner[] = []

beforeAll(async () => {
  setUpNamespace()
  for (const f of families)
    execFileSync('ip', ['route', 'add', narrow(f.v4), 'via', f.otherNode, 'dev', 'eth0', 'mtu', 'lock', String(ROUTE_MTU)])
  opened.push(await packetRunner({ redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }))
})
afterAll(() => opened.forEach((runner) => runner.close()))

/** Somewhere behind a narrower way than the device of the underlay. */
function narrow(v4: boolean): string {
  return v4 ? '10.20.0.5' : 'fd00:20::5'
}

test.each(families)("$name: a route's own MTU counts where it is locked, as for what the kernel forwards", async (f) => {
  const packet = udp(at(f.pod, 41000), at(narrow(f.v4), 80), { payload: new Uint8Array(ROUTE_MTU - (f.v4 ? 28 : 48) + 1), df: true })
  const out = error(f, { packet, to: f.pod, kind: numbers(f).tooBig, mtu: ROUTE_MTU })
  const step = { say: 'one byte too many', through: 'from_workload', packet, action: 'redirect', reason: 'DROP_TOO_BIG', out } as const
  expect(await opened[0]?.run({ name: 'route', given: {}, steps: [step] })).toBeUndefined()
})

test('whoever floods gets so many answers a second and no more', async () => {
  const [runner] = opened
  await runner?.run({ name: 'fill', given: {}, steps: [] })
  const refused = families.map((f) => tcp(at(f.client, 41000), at(f.vip, 80), { flags: 'S' }))
  execFileSync('taskset', ['-cp', '0', String(process.pid)]) // each CPU counts for itself
  const begun = performance.now()
  const results = Array.from({ length: 2 * ANSWERS_A_SECOND }, () => refused.map((packet) => runner?.send('from_host', packet))).flat()
  const seconds = Math.ceil((performance.now() - begun) / 1000)
  const answered = results.filter((result) => result === 'redirect').length
  expect(new Set(results)).toEqual(new Set(['redirect', 'drop']))
  expect(answered).toBeLessThanOrEqual(ANSWERS_A_SECOND * (seconds + 1))
})

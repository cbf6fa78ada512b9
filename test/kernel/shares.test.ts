// SPDX-License-Identifier: Apache-2.0
/** What one sender uses up of what programs have for all of them: others keep theirs. Layer: test. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ifindexOf, type BpfProgram } from '#native'
import { loadObject, program, sharedMaps, type Loaded } from '../../testkit/packets/objects.ts'
import { runMarked } from '../../testkit/packets/mark.ts'
import { udp } from '../../testkit/packets/packet.ts'
import { setUpNamespace, testCfg } from '../../testkit/packets/runner.ts'
import { at, devices, families } from '../../testkit/packets/cluster.ts'
import { fill, openMaps } from '../../testkit/packets/case-maps.ts'

const DROPPED = 2
const REDIRECTED = 7
/** a second and CPU, ANSWERS_A_SECOND in bpf/include/l3/icmp.h; twice of it, for a second may pass meanwhile */
const MANY = 2000

let loaded: Loaded
let programs: Record<'fromPod' | 'fromHost', BpfProgram>

beforeAll(() => {
  setUpNamespace()
  // rates are each CPU's own
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', '0', String(process.pid)])
})

describe.each(families)('$name', (f) => {
  beforeAll(async () => {
    const features = { redirectPeer: true, redirectNeigh: true, coarseClock: false, jiffies: true, netnsCookies: true }
    loaded = await loadObject('tc', { cfg: testCfg(features) })
    programs = { fromPod: program(loaded, 'from_workload'), fromHost: program(loaded, 'from_host') }
  })
  beforeEach(() => {
    fill(openMaps(loaded), { backends: [] })
  })
  afterAll(() => {
    for (const handle of [...Object.values(programs), ...sharedMaps(loaded.object).values()]) handle.close()
    loaded.object.close()
  })

  const refused = (from: string): Uint8Array => udp(at(from, 40_000), at(f.vip, 80))
  const senders = {
    'a pod': () => programs.fromPod.testRun({ data: refused(f.pod) }).retval,
    'a pod behind another device': () =>
      runMarked(programs.fromPod, refused(f.elsewherePod), { mark: 0, device: ifindexOf(devices.pod.name) }).retval,
    'the network': () => programs.fromHost.testRun({ data: refused(f.client) }).retval,
  }

  test('a sender that has more packets refused than are answered leaves the others their answers', () => {
    const rest = Object.entries(senders)
    for (let flood = rest.shift()?.[1]; flood !== undefined; flood = rest.shift()?.[1]) {
      expect(flood()).toBe(REDIRECTED)
      let left = MANY
      while (left > 0 && flood() === REDIRECTED) left--
      expect(left, 'answers have a limit').toBeGreaterThan(0)
      expect(rest.map(([name, send]) => [name, send()])).toEqual(rest.map(([name]) => [name, REDIRECTED]))
    }
  })

  const part = (from: string, to: string, { id, offset }: { id: number; offset: number }): Uint8Array =>
    udp(at(from, 40_000), at(to, 9), { payload: new Uint8Array(64), id, fragment: { offset, more: offset === 0 } })

  test('fragments of a pod that wait for their first leave places for those that clients send', () => {
    expect(programs.fromHost.testRun({ data: part(f.client, f.pod, { id: 1, offset: 24 }) }).retval).toBe(DROPPED)
    for (let id = 2; id < MANY; id++) programs.fromPod.testRun({ data: part(f.pod, f.secondPod, { id, offset: 24 }) })
    // it goes behind its first, which comes in again with it
    expect(programs.fromHost.testRun({ data: part(f.client, f.pod, { id: 1, offset: 0 }) }).retval).toBe(DROPPED)
    expect(programs.fromHost.testRun({ data: part(f.client, f.pod, { id: MANY, offset: 0 }) }).retval).toBe(REDIRECTED)
  })

  test("fragments of clients that wait for their first leave places for a pod's", () => {
    expect(programs.fromPod.testRun({ data: part(f.pod, f.secondPod, { id: 1, offset: 24 }) }).retval).toBe(DROPPED)
    for (let id = 2; id < MANY; id++) programs.fromHost.testRun({ data: part(f.client, f.pod, { id, offset: 24 }) })
    expect(programs.fromPod.testRun({ data: part(f.pod, f.secondPod, { id: 1, offset: 0 }) }).retval).toBe(DROPPED)
    expect(programs.fromPod.testRun({ data: part(f.pod, f.secondPod, { id: MANY, offset: 0 }) }).retval).toBe(REDIRECTED)
  })
})

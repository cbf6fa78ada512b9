// SPDX-License-Identifier: Apache-2.0
/** Which flows make room before others: programs, in a full table, and the agent, which counts and sweeps flows, say
 * the same of every state of an entry. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { monotonicNs, type BpfProgram } from '#native'
import { FlowReader } from '#agent/dataplane/conntrack/reader.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { CtKey, CtValue } from '#agent/maps/shapes.ts'
import { enumValue } from '#agent/maps/btf.ts'
import { ANY_V6, parseAddr } from '#lib/base/ip.ts'
import { families, at } from '../../testkit/packets/cluster.ts'
import { fill, openMaps } from '../../testkit/packets/case-maps.ts'
import { loadObject, program, sharedMaps, TestMap, type Loaded } from '../../testkit/packets/objects.ts'
import { udp } from '../../testkit/packets/packet.ts'
import { setUpNamespace, testCfg } from '../../testkit/packets/runner.ts'
import { NOT_JUDGED } from '../support/flow-value.ts'
import { PROTO, STATE, TIMEOUTS } from '../support/flow-entries.ts'

const [v4] = families
const packet = udp(at(v4?.secondPod ?? '', 1024), at('198.51.100.1', 53))
/** an entry for each slot of np_recent */
const ROOM = 2
/** every bit but those that say where a flow was met */
const STATES = Array.from({ length: 2 * STATE.rst }, (_, bits) => bits)
const LEG_FLAGS = ['LEG_DSR', 'LEG_OPENING', 'LEG_ANSWER', 'LEG_INNER'] as const
/** longer than programs go without a closer look, so that the other may make room in either program */
const LONGEST_IDLE_MS = 10_000

let loaded: Loaded
let table: TestMap<CtKey, CtValue>
let recent: TestMap<number, CtKey>
let fromPod: BpfProgram

const key = (port: number, proto: number): CtKey => ({
  ...{ lo: parseAddr('10.0.0.1'), hi: parseAddr('10.0.0.2'), lo_port: port, hi_port: port, proto, lane: 0 },
})

function value(state: number, flags: readonly number[], idleMs: number): CtValue {
  const [lo = 0, hi = 0] = flags
  const leg = { ifindex: 0, mtu: 1500, ack: 0, window: 0, wscale: 0, hook: 0, bytes: 0, packets: 0, met: 0 }
  const out = { src: ANY_V6, dst: ANY_V6, sport: 0, dport: 0 }
  const legs = [lo, hi].map((some) => ({ ...leg, flags: some }))
  return { seen: monotonicNs() / 1e6 - idleMs, out, state, lane: 0, via: ANY_V6, leg: legs, slot: 0, ...NOT_JUDGED }
}

/** Does it make room though it is in use, and another has been idle for long? */
function goesFirst(of: CtKey, one: CtValue): boolean {
  const open = STATE.seenLo | STATE.seenHi | STATE.open
  table.empty()
  const idle = key(2, PROTO.tcp)
  table.set(of, one)
  table.set(idle, value(open, [], LONGEST_IDLE_MS))
  recent.set(0, of)
  recent.set(1, idle)
  fromPod.testRun({ data: packet })
  const left = [of, idle].filter((each) => table.get(each) !== undefined)
  expect(left, 'one of the two has made room').toHaveLength(1)
  return left[0] === idle
}

describe.each([
  ['of this kernel', true],
  ['of the oldest', false],
])('programs %s', (_title, jiffies) => {
  beforeAll(async () => {
    setUpNamespace()
    const features = { redirectPeer: true, redirectNeigh: true, coarseClock: false, jiffies, netnsCookies: true }
    const cfg = { ...testCfg(features), host_policy: 0, untracked: 0, recent_mask: ROOM - 1 }
    loaded = await loadObject('tc', { cfg, conntrack: ROOM })
    fill(openMaps(loaded), {})
    table = new TestMap(loaded, catalogue.np_ct)
    recent = new TestMap(loaded, catalogue.np_recent)
    fromPod = program(loaded, 'from_workload')
  })
  afterAll(() => {
    for (const map of sharedMaps(loaded.object).values()) map.close()
    loaded.object.close()
  })

  test.each(Object.entries(PROTO))('and the agent agree on %s in every state', (_name, proto) => {
    const reader = new FlowReader(loaded.btf, TIMEOUTS)
    const bits = LEG_FLAGS.map((name) => enumValue(loaded.btf, 'leg_flag', name))
    const legs = [
      [0, 0],
      ...bits.flatMap((flag) => [
        [flag, 0],
        [0, flag],
      ]),
    ]
    const of = key(1, proto)
    for (const state of STATES)
      for (const flags of legs) {
        const one = value(state, flags, 0)
        const bytes = { keys: encodeBytes(table.codecs.key, of), values: encodeBytes(table.codecs.value, one) }
        const { evictedFirst } = reader.read(bytes, 0, monotonicNs() / 1e6)
        expect(goesFirst(of, one), `state ${state}, legs ${flags.join(' and ')}`).toBe(evictedFirst)
      }
  })
})

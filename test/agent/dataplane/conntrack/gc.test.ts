// SPDX-License-Identifier: Apache-2.0
/** The sweep over a table in memory: what it counts, what it deletes, what it leaves, how much time it takes.
 * Layer: test. */
import { describe, expect, test } from 'vitest'
import { silentLog } from '#lib/obs/log.ts'
import { ConntrackGc, type FlowTable } from '#agent/dataplane/conntrack/gc.ts'
import { FlowReader } from '#agent/dataplane/conntrack/reader.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'
import { FLOW_BYTES, flowEntry, flowTypes, PROTO, STATE, TIMEOUTS, type FlowSpec } from '../../../support/flow-entries.ts'

const NOW = 10_000_000

/** Sleeps end at once, and are added up. */
class HastyClock extends FakeClock {
  slept = 0

  override sleep(ms: number): Promise<void> {
    this.slept += ms
    return Promise.resolve()
  }
}

function setup(flows: readonly FlowSpec[], maxEntries = 10_000) {
  const map = new FakeMap({ name: 'np_ct', keySize: FLOW_BYTES.key, valueSize: FLOW_BYTES.value, maxEntries })
  for (const flow of flows) {
    const { key, value } = flowEntry(flow)
    map.update(key, value)
  }
  const found: { table: FlowTable | undefined; full: number; grows: boolean; fullAt: number } = {
    ...{ table: undefined, full: 0, grows: true, fullAt: 0 },
  }
  const reader = new FlowReader(flowTypes, TIMEOUTS)
  const table: FlowTable = {
    map,
    reader,
    destinationOf: () => undefined,
    clientOf: () => undefined,
    maxEntries,
    fullAt: () => found.fullAt,
  }
  found.table = table
  const clock = new HastyClock()
  const now = { ms: NOW }
  const sweep = new ConntrackGc({
    clock,
    log: silentLog,
    monotonicMs: () => now.ms,
    table: () => found.table,
    onFull: () => {
      found.full++
      return found.grows
    },
  })
  const pass = (): Promise<void> => sweep.pass(table, new AbortController().signal)
  const relieve = (): Promise<void> => sweep.relieve(table, new AbortController().signal)
  const has = (flow: FlowSpec): boolean => map.lookup(flowEntry(flow).key) !== undefined
  /** Each look takes so long. */
  const slow = (ms: number): void => {
    const read = map.readChunk.bind(map)
    map.readChunk = (cursor, room) => {
      clock.advance(ms)
      return read(cursor, room)
    }
  }
  return { map, table, found, now, clock, sweep, slow, pass, relieve, has }
}

/** ms since the flow was seen */
function idle(number: number, ms: number, rest: Omit<FlowSpec, 'number' | 'seen'> = {}): FlowSpec {
  return { number, seen: NOW - ms, ...rest }
}

describe('the sweep', () => {
  test.each<[string, Omit<FlowSpec, 'number' | 'seen'>, number]>([
    ['opening', { state: STATE.seenLo }, TIMEOUTS.tcpSyn],
    ['opening', { state: STATE.seenLo | STATE.seenHi }, TIMEOUTS.tcpSyn],
    ['open', {}, TIMEOUTS.tcpOpen],
    ['closing', { state: STATE.open | STATE.finHi }, TIMEOUTS.tcpFin],
    ['reset', { state: STATE.open | STATE.finLo | STATE.rst }, TIMEOUTS.tcpRst],
    ['one-way', { proto: PROTO.udp, state: STATE.seenHi }, TIMEOUTS.udp],
    ['two-way', { proto: PROTO.udp, state: STATE.seenHi | STATE.seenLo }, TIMEOUTS.udpStream],
    ['other', { proto: PROTO.icmp, state: STATE.seenLo }, TIMEOUTS.icmp],
  ])('a flow that is %s lives as long as programs think, and is deleted some time after that', async (state, flow, timeout) => {
    const [live, late, dead] = [idle(1, timeout - 1, flow), idle(2, timeout + 29_000, flow), idle(3, timeout + 31_000, flow)]
    const { sweep, pass, has } = setup([live, late, dead])
    await pass()
    expect([has(live), has(late), has(dead)]).toEqual([true, true, false])
    expect(sweep.census?.counts()).toMatchObject([{ state, flows: 1 }])
    expect([sweep.census?.live, sweep.census?.expired, sweep.deleted]).toEqual([1, 2, 1])
  })

  test('both entries of a translated flow count as one, and go in one pass', async () => {
    const both = [idle(1, 5, { translated: true }), idle(2, 5, { translated: true })]
    const old = [idle(3, 9_000_000, { translated: true }), idle(4, 9_000_000, { translated: true })]
    const { sweep, pass, has } = setup([...both, ...old])
    await pass()
    expect(sweep.census?.counts()).toEqual([{ proto: 'tcp', state: 'open', translated: true, flows: 1 }])
    expect([...both, ...old].map(has)).toEqual([true, true, false, false])
  })

  test('an entry that a packet has changed since it was read stays', async () => {
    const [old, fresh, other] = [idle(1, 9_000_000), idle(1, 0), idle(2, 9_000_000)]
    const { map, sweep, pass, has } = setup([old, other])
    const deleteSame = map.deleteSame.bind(map)
    map.deleteSame = (keys, values, count) => {
      const { key, value } = flowEntry(fresh)
      map.update(key, value)
      return deleteSame(keys, values, count)
    }
    await pass()
    expect([has(old), has(other), sweep.deleted]).toEqual([true, false, 1])
  })

  test('takes no more than a hundredth of a CPU', async () => {
    const { clock, map, slow, pass } = setup(Array.from({ length: 5000 }, (_, number) => idle(number, 0)))
    slow(2)
    await pass()
    expect(map.calls).toHaveLength(5)
    expect(clock.slept).toBe(5 * 2 * 99)
  })

  test('rests a second at the most, also after it was kept from the CPU', async () => {
    const { clock, slow, pass } = setup([idle(1, 0)])
    slow(500)
    await pass()
    expect(clock.slept).toBe(1000)
  })

  test('says once a pass that answered flows fill the table, which expired and one-way ones do not', async () => {
    const live = Array.from({ length: 95 }, (_, number) => idle(number, 0))
    const { found, pass } = setup(live, 100)
    await pass()
    await pass()
    expect(found.full).toBe(2)
    const other = setup([...live.slice(0, 80), ...Array.from({ length: 15 }, (_, number) => idle(1000 + number, 9_000_000))], 100)
    await other.pass()
    expect(other.found.full).toBe(0)
    const oneWay = setup(
      Array.from({ length: 95 }, (_, number) => idle(number, 0, { state: STATE.seenLo })),
      100,
    )
    await oneWay.pass()
    expect(oneWay.found.full).toBe(0)
  })

  test('of a table without room what is over goes at once, and what one end alone has sent packets of, is half open or closed', async () => {
    const both = STATE.seenHi | STATE.seenLo
    const kept = [idle(1, 3_000_000), idle(2, 1000, { state: STATE.seenLo }), idle(3, 170_000, { proto: PROTO.udp, state: both })]
    const udp = { proto: PROTO.udp, state: STATE.seenHi }
    const over = { state: STATE.open | STATE.finLo | STATE.finHi }
    const gone = [
      ...[idle(4, TIMEOUTS.tcpOpen + 1), idle(5, 5000, { state: STATE.seenLo }), idle(6, 5000, udp)],
      ...[idle(7, 5000, over), idle(8, 5000, { state: both })],
    ]
    const { found, clock, relieve, has } = setup([...kept, ...gone])
    await relieve()
    expect([...kept, ...gone].map(has)).toEqual([true, true, true, ...gone.map(() => false)])
    expect([found.full, clock.slept]).toEqual([0, 0])
  })

  test('a table full of answered flows grows; one that may not gives up those idle longest, a sixteenth of its room', async () => {
    const flows = Array.from({ length: 1600 }, (_, number) => idle(number, number < 100 ? 2_000_000 : number * 10))
    const grown = setup(flows, 1600)
    await grown.relieve()
    expect([grown.found.full, flows.filter(grown.has).length]).toEqual([1, 1600])
    const stays = setup(flows, 1600)
    stays.found.grows = false
    await stays.relieve()
    expect(flows.filter((flow) => !stays.has(flow))).toEqual(flows.slice(0, 100))
  })

  test('of a table full of flows that have been idle equally long a sixteenth goes, and of one full of flows in use none', async () => {
    const left = async (idleMs: number): Promise<number> => {
      const flows = Array.from({ length: 1600 }, (_, number) => idle(number, idleMs))
      const { found, relieve, has } = setup(flows, 1600)
      found.grows = false
      await relieve()
      return flows.filter(has).length
    }
    expect([await left(600_000), await left(3000)]).toEqual([1500, 1600])
  })

  test('closed flows do not make the table grow, nor cost others their place', async () => {
    const closed = Array.from({ length: 1580 }, (_, number) => idle(number, 1000, { state: STATE.open | STATE.rst }))
    const kept = Array.from({ length: 20 }, (_, number) => idle(10_000 + number, 3_000_000))
    const { found, relieve, has } = setup([...closed, ...kept], 1600)
    await relieve()
    expect([found.full, kept.filter(has).length]).toEqual([0, 20])
  })

  test('a pass ends early when programs find no room, and another begins at once and does not rest', async () => {
    const flow = idle(1, 5000, { state: STATE.seenLo })
    const { found, now, sweep, clock, has, pass } = setup([flow])
    found.fullAt = NOW + 1
    now.ms = NOW + 10_000
    await pass()
    expect([sweep.census, has(flow)]).toEqual([undefined, true])
    const [ended, before] = [new AbortController(), clock.slept]
    const sleep = clock.sleep.bind(clock)
    clock.sleep = (ms) => {
      if (!has(flow)) ended.abort()
      return sleep(ms)
    }
    await sweep.run(ended.signal)
    expect([has(flow), clock.slept - before]).toEqual([false, 500])
  })

  test('leaves off when the table is replaced, and counts nothing', async () => {
    const { found, sweep, pass } = setup([idle(1, 0)])
    found.table = undefined
    await pass()
    expect(sweep.census).toBeUndefined()
  })
})

// SPDX-License-Identifier: Apache-2.0
/** Pinned maps of another size or layout: what is carried over, what is created again, what is refused. Layer: test. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfMap, BpfProgram, ifindexOf, monotonicNs, possibleCpus } from '#native'
import { ADDR_LOCAL_POD } from '#lib/base/bpf-constants.ts'
import { ANY_V6, parseAddr } from '#lib/base/ip.ts'
import type { MapSizes } from '#agent/compile/desired.ts'
import { counterSlots, counterTotal } from '#agent/maps/counters.ts'
import type { OpenObject } from '#agent/dataplane/programs/objects.ts'
import { openObject } from '#agent/dataplane/programs/objects.ts'
import type { SharedMaps } from '#agent/dataplane/programs/shared-maps.ts'
import { ensureMaps } from '#agent/dataplane/programs/shared-maps.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { bindMap, catalogue } from '#agent/maps/catalogue.ts'
import type { CtKey, CtValue } from '#agent/maps/shapes.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { addrInfo } from '../../../testkit/packets/addr-info.ts'
import { at, families } from '../../../testkit/packets/cluster.ts'
import { loadObject, objectPath, program, TestMap } from '../../../testkit/packets/objects.ts'
import { udp } from '../../../testkit/packets/packet.ts'
import { setUpNamespace, testCfg } from '../../../testkit/packets/runner.ts'
import { otherMaps, type HeaderEdit } from '../../support/other-maps.ts'
import { NOT_JUDGED } from '../../support/flow-value.ts'
import { STATE, TIMEOUTS } from '../../support/flow-entries.ts'

const SIZES: MapSizes = { conntrack: 2000, frontends: 100, backends: 200, affinity: 100, addrs: 300, live: 200 }

let pins: Pins
let opened: OpenObject
const cleanups: (() => void)[] = []

beforeEach(() => {
  const parent = mkdtempSync('/sys/fs/bpf/np-test-')
  cleanups.push(() => rmSync(parent, { recursive: true }))
  pins = new Pins(join(parent, 'netplane'))
  pins.prepare()
  opened = openObject({ name: 'tc', path: objectPath('tc') })
  cleanups.push(() => opened.object.close())
})

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

async function ensure(sizes: MapSizes = SIZES): Promise<SharedMaps> {
  const shared = await ensureMaps({ pins, objects: [opened], sizes, timeouts: TIMEOUTS })
  cleanups.push(() => shared[Symbol.dispose]())
  return shared
}

/** Pins the map that an agent with older headers would have: `edit` turns today's into those. Returns a
 * handle on it. */
async function pinOld(name: 'np_ct' | 'np_counters' | 'np_frontends', edit: HeaderEdit): Promise<BpfMap> {
  const object = await otherMaps(edit, { np_ct: SIZES.conntrack, np_frontends: SIZES.frontends })
  const map = object.map(name)
  object.close()
  map.pin(pins.map(name))
  cleanups.push(() => map.close())
  return map
}

function ctCodecs(): ReturnType<typeof bindMap<CtKey, CtValue>> {
  const spec = opened.shared.get('np_ct')
  if (spec === undefined) throw new Error('no np_ct')
  return bindMap(catalogue.np_ct, opened.btf, spec)
}

/** Pins that are no map's own. */
function odd(): string[] {
  return readdirSync(pins.maps).filter((name) => !Object.hasOwn(catalogue, name))
}

function flow(port: number): CtKey {
  return { lo: parseAddr('10.0.0.1'), hi: parseAddr('10.0.0.2'), lo_port: port, hi_port: 80, proto: 6, lane: 0 }
}

/** The flow table is one that is not as wanted, with the same layout. */
const NOT_ALLOCATED: HeaderEdit = [
  [
    'NP_TABLE(np_ct, struct ct_key, struct ct_value, 512000);',
    `struct {
      __uint(type, BPF_MAP_TYPE_HASH); __uint(map_flags, BPF_F_NO_PREALLOC); __uint(max_entries, 512000);
      __type(key, struct ct_key); __type(value, struct ct_value);
    } np_ct SEC(".maps");`,
  ],
]

const LEG = { ifindex: 3, mtu: 1500, flags: 1, ack: 9, window: 512, wscale: 7, hook: 2, bytes: 0, packets: 0, met: 0 }
const FLOW: CtValue = {
  seen: 1234,
  out: { src: ANY_V6, dst: ANY_V6, sport: 0, dport: 0 },
  state: 3,
  lane: 0,
  via: parseAddr('192.0.2.7'),
  leg: [LEG, LEG],
  slot: 0,
  ...NOT_JUDGED,
}

describe('np_ct', () => {
  test('of the same size and layout is adopted with its BTF', async () => {
    const first = await ensure()
    const second = await ensure()
    expect([first.created.includes('np_ct'), second.adopted.includes('np_ct'), second.replaced]).toEqual([true, true, []])
    expect(second.maps.get('np_ct')?.info().btfId).toBeGreaterThan(0)
  })

  test('grows: flows are carried over, also those that came while hooks were being switched', async () => {
    const codecs = ctCodecs()
    const before = (await ensure()).maps.get('np_ct')
    for (let port = 1; port <= 1000; port++) before?.update(encodeBytes(codecs.key, flow(port)), encodeBytes(codecs.value, FLOW))
    const shared = await ensure({ ...SIZES, conntrack: 5000 })
    const after = shared.maps.get('np_ct')
    expect(shared.replaced).toEqual([{ map: 'np_ct', reason: 'max_entries 2000 instead of 5000', copied: 1000, lost: undefined }])
    expect(after?.info().maxEntries).toBe(5000)

    before?.update(encodeBytes(codecs.key, flow(2000)), encodeBytes(codecs.value, FLOW))
    after?.update(encodeBytes(codecs.key, flow(1)), encodeBytes(codecs.value, { ...FLOW, seen: 9999 }))
    expect(await shared.finish()).toBe(1)
    const read = (port: number): CtValue => decodeBytes(codecs.value, after?.lookup(encodeBytes(codecs.key, flow(port))) ?? Buffer.alloc(0))
    expect([read(2000), read(1).seen]).toEqual([FLOW, 9999])

    const pinned = BpfMap.openPin(pins.map('np_ct'))
    expect(pinned.info().id).toBe(after?.info().id)
    pinned.close()
    expect(odd()).toEqual([])
  })

  describe('that is replaced, before hooks are switched:', () => {
    const put = (map: BpfMap | undefined, port: number): void =>
      map?.update(encodeBytes(ctCodecs().key, flow(port)), encodeBytes(ctCodecs().value, FLOW))
    const has = ({ maps }: SharedMaps, port: number): boolean =>
      maps.get('np_ct')?.lookup(encodeBytes(ctCodecs().key, flow(port))) !== undefined
    let before: BpfMap | undefined
    let replaced: SharedMaps

    beforeEach(async () => {
      before = (await ensure()).maps.get('np_ct')
      put(before, 1)
      replaced = await ensure({ ...SIZES, conntrack: 5000 })
      put(before, 2)
    })

    test('the agent is killed, and the next one has flows that came since', async () => {
      replaced[Symbol.dispose]()
      const next = await ensure({ ...SIZES, conntrack: 5000 })
      expect([next.replaced, has(next, 1), has(next, 2)]).toEqual([[], true, true])
      put(before, 3)
      expect([await next.finish(), has(next, 3), odd()]).toEqual([1, true, []])
    })

    test('another size is wanted', async () => {
      const third = await ensure({ ...SIZES, conntrack: 8000 })
      put(before, 3)
      put(replaced.maps.get('np_ct'), 4)
      expect(odd()).toHaveLength(2)
      expect([await third.finish(), odd()]).toEqual([2, []])
      expect([1, 2, 3, 4].map((port) => has(third, port))).toEqual([true, true, true, true])
    })

    test('programs are refused, and the old one has its place back', async () => {
      replaced.undo()
      replaced[Symbol.dispose]()
      expect(odd()).toEqual([])
      const next = await ensure({ ...SIZES, conntrack: 5000 })
      expect([next.replaced.map(({ copied }) => copied), has(next, 2)]).toEqual([[2], true])
    })

    test('a kill between the two pins leaves nothing to carry over', async () => {
      replaced.undo()
      replaced[Symbol.dispose]()
      before?.pin(pins.oldMap('np_ct', before.info().id))
      const next = await ensure({ ...SIZES, conntrack: 5000 })
      expect([next.replaced.map(({ copied }) => copied), odd().length]).toEqual([[2], 1])
      expect([await next.finish(), odd()]).toEqual([0, []])
    })
  })

  describe('that is full, and of another version,', () => {
    const ROOM = SIZES.conntrack
    const CARRIED = (15 * ROOM) / 16
    const ALL = Array.from({ length: ROOM }, (_, at) => at + 1)
    let old: BpfMap
    let shared: SharedMaps

    const put = (port: number, { isOpen, idleMs }: { readonly isOpen: boolean; readonly idleMs: number }): void => {
      const state = isOpen ? STATE.seenLo | STATE.seenHi | STATE.open : STATE.seenLo
      const value = { ...FLOW, state, seen: monotonicNs() / 1e6 - idleMs }
      old.update(encodeBytes(ctCodecs().key, flow(port)), encodeBytes(ctCodecs().value, value))
    }
    const carried = (): readonly number[] => ALL.filter((port) => has(port))
    const has = (port: number): boolean => shared.maps.get('np_ct')?.lookup(encodeBytes(ctCodecs().key, flow(port))) !== undefined
    const replace = async (of: (port: number) => { readonly isOpen: boolean; readonly idleMs: number }): Promise<void> => {
      old = await pinOld('np_ct', NOT_ALLOCATED)
      for (const port of ALL) put(port, of(port))
      shared = await ensure()
    }

    test('leaves room: first flows of one end stay behind, and do not come afterwards either', async () => {
      const isOpen = (port: number): boolean => port % 4 > 0
      await replace((port) => ({ isOpen: isOpen(port), idleMs: isOpen(port) ? 100_000 : 5000 }))
      const before = carried()
      expect([before.length, before.filter(isOpen).length]).toEqual([CARRIED, ALL.filter(isOpen).length])
      const [gone = 0] = ALL.filter((port) => !has(port))
      old.delete(encodeBytes(ctCodecs().key, flow(gone)))
      put(ROOM + 1, { isOpen: false, idleMs: 0 })
      expect([await shared.finish(), has(ROOM + 1), carried()]).toEqual([1, true, before])
    })

    test('leaves room: where both ends have sent packets of all, those that have been idle longest stay behind', async () => {
      await replace((port) => ({ isOpen: true, idleMs: port <= ROOM - CARRIED ? 100_000 : port * 10 }))
      expect([carried().length, carried().filter((port) => port <= ROOM - CARRIED)]).toEqual([CARRIED, []])
    })

    test('refuses no new flow, though no flow is known that could make room', async () => {
      setUpNamespace()
      await replace(() => ({ isOpen: true, idleMs: 0 }))
      const features = { redirectPeer: true, redirectNeigh: true, coarseClock: false, jiffies: true, netnsCookies: true }
      const loaded = await loadObject('tc', { cfg: { ...testCfg(features), recent_mask: 511 }, share: shared.maps })
      cleanups.push(() => loaded.object.close())
      const [v4] = families
      const pod = v4?.secondPod ?? ''
      new TestMap(loaded, catalogue.np_addrs).set(parseAddr(pod), addrInfo(ADDR_LOCAL_POD, { ifindex: ifindexOf('lo') }))
      for (let port = 1024; port < 1024 + ROOM; port++)
        program(loaded, 'from_workload').testRun({ data: udp(at(pod, port), at('198.51.100.1', 53)) })
      const refused = counterTotal(loaded.object.map('np_counters'), counterSlots(loaded.btf).get('DROP_FLOW_INSERT') ?? -1)
      const evicted = counterTotal(loaded.object.map('np_counters'), counterSlots(loaded.btf).get('COUNT_EVICTED') ?? -1)
      expect([refused, evicted]).toEqual([0, ROOM - (ROOM - CARRIED)])
    })
  })

  test('with a field that no longer fits: nothing can be carried over, and the reason is reported', async () => {
    await pinOld('np_ct', [['__u8 state;\n__u8 epoch;', '__u16 state;']])
    const shared = await ensure()
    expect(shared.replaced).toMatchObject([
      { map: 'np_ct', copied: 0, lost: 'struct ct_value.state: __u16 in the old map, __u8 in the new one' },
    ])
  })

  test('with fewer fields: flows are carried over field by field', async () => {
    const old = await pinOld('np_ct', [
      ['struct addr via;', ''],
      ['};\n_Static_assert(sizeof(struct ct_value)', '__u8 reserved[16];\n};\n_Static_assert(sizeof(struct ct_value)'],
    ])
    const codecs = ctCodecs()
    const bytes = Buffer.alloc(old.valueBytes)
    bytes.writeBigUInt64LE(77_000_000n, 0)
    bytes.writeUInt16BE(443, 8 + 32)
    bytes.writeUInt8(5, 44)
    bytes.writeUInt32LE(42, 48)
    old.update(encodeBytes(codecs.key, flow(1)), bytes)
    const shared = await ensure()
    expect(shared.replaced).toMatchObject([{ map: 'np_ct', copied: 1, lost: undefined }])
    const value = decodeBytes(codecs.value, shared.maps.get('np_ct')?.lookup(encodeBytes(codecs.key, flow(1))) ?? Buffer.alloc(0))
    expect(value).toMatchObject({ seen: 77, out: { sport: 443 }, state: 5, via: ANY_V6, leg: [{ ifindex: 42 }, { ifindex: 0 }] })
  })

  test('with another key: nothing can be carried over, and the reason is reported', async () => {
    await pinOld('np_ct', [['__be16 lo_port, hi_port;\n__u8 proto;\n__u8 pad;', '__be16 lo_port, hi_port;\n__u8 proto;\n__u8 zone;']])
    const { replaced, maps } = await ensure()
    expect(replaced).toMatchObject([{ map: 'np_ct', copied: 0, lost: 'struct ct_key: the key field zone is gone' }])
    expect(maps.get('np_ct')?.nextKey(undefined)).toBeUndefined()
  })

  test('without BTF is judged by its sizes', async () => {
    const bare = BpfMap.create({ name: 'np_ct', type: 1, keySize: 40, valueSize: 152, maxEntries: SIZES.conntrack })
    bare.pin(pins.map('np_ct'))
    bare.close()
    expect((await ensure()).adopted).toContain('np_ct')
    const other = await ensure({ ...SIZES, conntrack: 4000 })
    expect(other.replaced).toMatchObject([{ map: 'np_ct', copied: 0, lost: 'struct np_ct: the map carries no BTF' }])
  })
})

test('a table of rows is created again and empty: the agent writes all of them', async () => {
  const first = (await ensure()).maps.get('np_frontends')
  first?.update(Buffer.alloc(20), Buffer.alloc(40))
  const { replaced, maps } = await ensure({ ...SIZES, frontends: 500 })
  expect(replaced).toEqual([{ map: 'np_frontends', reason: 'max_entries 100 instead of 500', copied: 0, lost: undefined }])
  expect([maps.get('np_frontends')?.info().maxEntries, maps.get('np_frontends')?.nextKey(undefined)]).toEqual([500, undefined])
})

test('counters follow their names', async () => {
  const old = await pinOld('np_counters', [
    ['DROP_MALFORMED,', ''],
    ['COUNT_FLOW_SERVICE,', 'COUNT_GONE, COUNT_FLOW_SERVICE,'],
  ])
  const slots = counterSlots(opened.btf)
  const perCpu = (value: bigint): Buffer => Buffer.from(new BigUint64Array(possibleCpus()).fill(value).buffer)
  const oldSlot = (name: string): number => (slots.get(name) ?? 0) - 1
  old.update(u32(0), perCpu(100n))
  old.update(u32(oldSlot('DROP_NO_BACKEND')), perCpu(7n))
  old.update(u32(oldSlot('COUNT_CONNECT') + 1), perCpu(9n))
  const { replaced, maps } = await ensure()
  expect(replaced).toMatchObject([{ map: 'np_counters', reason: 'DROP_MALFORMED in slot none instead of 2', lost: undefined }])
  const read = (name: string): bigint =>
    maps
      .get('np_counters')
      ?.lookup(u32(slots.get(name) ?? 0))
      ?.readBigUInt64LE() ?? -1n
  expect(['DROP_NONE', 'DROP_SHORT', 'DROP_MALFORMED', 'DROP_NO_BACKEND', 'COUNT_CONNECT'].map(read)).toEqual([100n, 0n, 0n, 7n, 9n])
})

test('a pin that is no map of any kind is left alone and named', async () => {
  const program = BpfProgram.load({ type: 3, instructions: Buffer.from('b700000000000000' + '9500000000000000', 'hex') })
  program.pin(pins.map('np_addrs'))
  program.close()
  await expect(ensure()).rejects.toMatchObject({ code: 'MAP', map: 'np_addrs', op: 'open pin' })
  expect(readdirSync(pins.maps)).toEqual(['np_addrs'])
})

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

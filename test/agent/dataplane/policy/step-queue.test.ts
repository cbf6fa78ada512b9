// SPDX-License-Identifier: Apache-2.0
/** Steps of policy against maps in memory: their order, what stops them, and what a whole leaves. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { ADDR_LOCAL_POD, DIMENSION_PEER } from '#lib/base/bpf-constants.ts'
import { formatAddr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { recordOf } from '#lib/base/object.ts'
import { bitsRow } from '#agent/compile/policy/rulesets/compile-ruleset.ts'
import { NO_SET, type PolicyRow, type PolicyStep } from '#agent/compile/policy/tables.ts'
import { AddrMerger } from '#agent/dataplane/policy/addr-merger.ts'
import { policyHolds, policyDataplane, POLICY_TABLES, type PolicyDataplane } from '#agent/dataplane/policy/policy-dataplane.ts'
import { MapTable } from '#agent/dataplane/maps/map-table.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { decodeText, textWriter } from '#agent/maps/byte-rows.ts'
import { addrInfo } from '../../../../testkit/packets/addr-info.ts'
import { bindDeclared, builtObject } from '../../../support/compiled.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'

const { btf } = builtObject('tc')
const NAMES = [...POLICY_TABLES, 'addrs'] as const
type Name = (typeof NAMES)[number]
const addrs = bindDeclared(catalogue.np_addrs, btf)
const nets = bindDeclared(catalogue.np_nets, btf)
const [A, B] = ['00000000000000aa', '00000000000000bb'] as const

const rule = (set: string, index: number): PolicyRow & { readonly table: 'rules' } => ({
  table: 'rules',
  key: { set, index },
  value: { number: 9 },
})
const end = (addr: string, identity: number, ingress = NO_SET): PolicyRow & { readonly table: 'ends' } => ({
  table: 'ends',
  key: { addr: parseAddr(addr) },
  value: { identity, ingress, egress: NO_SET, stagedIngress: ingress, stagedEgress: NO_SET },
})
const net = (cidr: string, identity: number): PolicyRow & { readonly table: 'nets' } => ({
  table: 'nets',
  key: { cidr: parseCidr(cidr) },
  value: { identity },
})
/** A pod under one rule, and a prefix. */
const FIRST: readonly PolicyStep[] = [
  { kind: 'add', rows: [rule(A, 0), rule(A, 1)] },
  { kind: 'reassign', rows: [net('10.1.0.0/16', 3), net('10.0.0.0/8', 2), end('10.9.0.1', 5)] },
  { kind: 'switch', rows: [end('10.1.0.1', 4, A)] },
  { kind: 'epoch', epoch: 'next' },
]

class Log extends FakeMap {
  readonly #log: string[]

  constructor(spec: ConstructorParameters<typeof FakeMap>[0], log: string[]) {
    super(spec)
    this.#log = log
  }

  override updateBatch(keys: Uint8Array, values: Uint8Array, count: number): number {
    const done = super.updateBatch(keys, values, count)
    this.#log.push(`${this.info().name} +${count}`)
    return done
  }

  override deleteBatch(keys: Uint8Array, count: number): number {
    const done = super.deleteBatch(keys, count)
    this.#log.push(`${this.info().name} -${count}`)
    return done
  }
}

let log: string[]
let maps: Readonly<Record<Name, Log>>
let tables: Readonly<Record<Name, MapTable>>
let plane: PolicyDataplane
let join: AddrMerger

/** As an agent that starts. */
async function start(): Promise<void> {
  tables = recordOf(NAMES, (name) => new MapTable(maps[name]))
  join = new AddrMerger({ rows: tables.addrs.rows, value: addrs.value, actual: (key) => tables.addrs.actualAt(key) })
  const bind: Parameters<typeof policyDataplane>[0]['bind'] = (definition) => bindDeclared(definition, btf)
  const state = new FakeMap({ name: 'np_state', keySize: 4, valueSize: 24, maxEntries: 1 })
  plane = policyDataplane({ bind, tables, join, state, btf, now: () => 0 })
  for (const table of Object.values(tables)) await table.readBack()
  log.length = 0
}

beforeEach(async () => {
  log = []
  maps = recordOf(NAMES, (name) => {
    const { key, value } = bindDeclared<unknown, unknown>(catalogue[`np_${name}`], btf)
    return new Log({ name, keySize: key.size, valueSize: value.size, maxEntries: 100 }, log)
  })
  await start()
})

function take(steps: readonly PolicyStep[], complete = false): ReturnType<PolicyDataplane['queue']['apply']> {
  plane.queue.enqueue(steps, complete)
  return plane.queue.apply()
}

const endAt = (addr: string) => {
  const value = maps.addrs.contents().get(parseAddr(addr))
  return value === undefined ? undefined : decodeText(addrs.value, value)
}
const rulesKey = (index: number): string => textWriter(bindDeclared(catalogue.np_rules, btf).key)({ set: A, index })
const netTexts = (): string[] =>
  [...maps.nets.contents().keys()].map((key) => decodeText(nets.key, key)).map(({ prefix, addr }) => `${formatAddr(addr)}/${prefix - 96}`)

describe('steps', () => {
  test('one after the other, rows of a step in their order', () => {
    expect(take(FIRST, true)).toEqual({ done: 6, failures: [] })
    expect(log).toEqual(['rules +2', 'nets +2', 'addrs +1', 'addrs +1'])
    expect(netTexts()).toEqual(['10.1.0.0/16', '10.0.0.0/8'])
    expect(endAt('10.1.0.1')).toMatchObject({ kind: 0, identity: 4, ingress: A })
    expect([plane.queue.pending(), plane.queue.isWhole, plane.epoch.pending()]).toEqual([false, true, true])
  })

  test('what is forgotten goes in the order of the step', () => {
    take(FIRST, true)
    log.length = 0
    expect(take([{ kind: 'delete', rows: [net('10.0.0.0/8', 2), net('10.1.0.0/16', 3), rule(A, 0)] }]).done).toBe(3)
    expect(log).toEqual(['nets -2', 'rules -1'])
  })

  test('newcomers are no reason to judge flows again', () => {
    take(FIRST, true)
    plane.epoch.apply()
    take([
      { kind: 'switch', rows: [end('10.1.0.2', 4)] },
      { kind: 'epoch', epoch: 'newcomers' },
    ])
    expect(plane.epoch.dueMs).toBeUndefined()
  })
})

describe('a row that cannot be written', () => {
  test('stops what comes after it, and what the kernel has stays; then it goes on', () => {
    take(FIRST, true)
    plane.epoch.apply()
    maps.rules.broken.add(rulesKey(3))
    const change: readonly PolicyStep[] = [
      { kind: 'add', rows: [rule(A, 2), rule(A, 3), rule(A, 4)] },
      { kind: 'switch', rows: [end('10.1.0.1', 4, B)] },
      { kind: 'epoch', epoch: 'next' },
      { kind: 'delete', rows: [rule(A, 0)] },
    ]
    expect(take(change).failures).toMatchObject([{ item: 'policy' }])
    expect([endAt('10.1.0.1')?.ingress, maps.rules.contents().size, plane.epoch.dueMs]).toEqual([A, 3, undefined])
    expect(plane.queue.pending()).toBe(true)
    maps.rules.broken.clear()
    expect(plane.queue.apply()).toEqual({ done: 4, failures: [] })
    expect([endAt('10.1.0.1')?.ingress, maps.rules.contents().size, plane.epoch.dueMs]).toEqual([B, 4, 250])
  })

  test('holds new pods back, and no other address', () => {
    take(FIRST, true)
    maps.rules.broken.add(rulesKey(2))
    take([
      { kind: 'add', rows: [rule(A, 2)] },
      { kind: 'switch', rows: [end('10.1.0.2', 4, A)] },
    ])
    const write = textWriter(addrs.value)
    join.want(parseAddr('10.1.0.2'), write(addrInfo(ADDR_LOCAL_POD, { ifindex: 7 })))
    join.want(parseAddr('10.96.0.1'), write(addrInfo(4)))
    tables.addrs.applyUpdates()
    expect([endAt('10.1.0.2'), endAt('10.96.0.1')?.kind]).toEqual([undefined, 4])
    maps.rules.broken.clear()
    log.length = 0
    plane.queue.apply()
    expect(endAt('10.1.0.2')).toMatchObject({ kind: ADDR_LOCAL_POD, ifindex: 7, identity: 4, ingress: A })
    expect(log, 'the pod is one write').toEqual(['rules +1', 'addrs +1'])
  })
})

describe('a table that is full', () => {
  const rules = (set: string, count: number) => Array.from({ length: count }, (_, index) => rule(set, index))

  beforeEach(() => {
    take(FIRST, true)
    take([
      { kind: 'add', rows: rules(B, 150) },
      { kind: 'switch', rows: [end('10.1.0.1', 4, B)] },
    ])
    expect([maps.rules.contents().size, plane.queue.takeWholeRequest(0)]).toEqual([100, false])
  })

  test('is of no use to later steps: a whole is to take the place of all, and has room for its own rows at once', () => {
    take([
      { kind: 'switch', rows: [end('10.1.0.1', 4, A)] },
      { kind: 'delete', rows: rules(B, 150) },
    ])
    expect([plane.queue.pending(), plane.queue.takeWholeRequest(0), plane.queue.isWhole]).toEqual([true, true, true])
    expect(take([{ kind: 'add', rows: [rule(A, 2)] }, ...FIRST], true).failures).toEqual([])
    expect([plane.queue.pending(), plane.queue.takeWholeRequest(0), plane.queue.isWhole]).toEqual([false, false, true])
    expect([...maps.rules.contents().keys()].sort()).toEqual([0, 1, 2].map(rulesKey))
    expect(endAt('10.1.0.1')?.ingress).toBe(A)
  })

  test('as long as a whole is of no use, another is wanted later each time', () => {
    const more = (): boolean[] => {
      take([{ kind: 'delete', rows: rules(B, 1) }])
      return [0, 999, 1000, 1001, 2999, 3000].map((now) => plane.queue.takeWholeRequest(now))
    }
    expect(more()).toEqual([true, false, true, false, false, true])
    take([{ kind: 'add', rows: rules(B, 150) }], true)
    expect(plane.queue.takeWholeRequest(10_000)).toBe(false)
    take([{ kind: 'delete', rows: rules(B, 1) }])
    expect([6_999, 7_000].map((now) => plane.queue.takeWholeRequest(now))).toEqual([false, true])
  })
})

test('a row that a step names twice is in the kernel afterwards', () => {
  take([{ kind: 'reassign', rows: [net('10.1.0.0/16', 3), net('10.1.0.0/16', 3)] }], true)
  expect(maps.nets.contents().size).toBe(1)
  expect(tables.nets.pending).toEqual({ updates: 0, deletes: 0 })
})

test('of a step that fails in one table what it taught others goes as well: a whole may need the room', () => {
  const rules = (set: string) => Array.from({ length: 60 }, (_, index) => rule(set, index + 2))
  const bits = Array.from({ length: 150 }, (_, index) => bitsRow({ set: B, class: index, block: 0, dimension: DIMENSION_PEER }, ''))
  take(FIRST, true)
  take([{ kind: 'add', rows: [...rules(B), ...bits] }])
  take([{ kind: 'delete', rows: [] }])
  expect([maps.rules.contents().size, plane.queue.takeWholeRequest(0)]).toEqual([62, true])
  expect(take([{ kind: 'add', rows: rules(A) }, ...FIRST], true).failures).toEqual([])
  expect(plane.queue.pending()).toBe(false)
})

describe('a whole', () => {
  test('that the kernel has already writes nothing and moves nothing', async () => {
    take(FIRST, true)
    await start()
    expect(take(FIRST, true)).toEqual({ done: 0, failures: [] })
    expect([log, plane.epoch.dueMs, plane.queue.isWhole]).toEqual([[], undefined, true])
  })

  test('takes away what is not in it, when all else is done: wide prefixes first', async () => {
    take(FIRST, true)
    await start()
    const holds = policyHolds(plane, { writes: () => undefined, removals: () => undefined })
    expect(['nets', 'addrs', 'ranges'].map((table) => holds.removals(table)?.('k'))).toEqual([true, true, undefined])
    take(
      [
        { kind: 'add', rows: [rule(B, 0)] },
        { kind: 'switch', rows: [end('10.1.0.1', 4, B)] },
      ],
      true,
    )
    expect(log).toEqual(['rules +1', 'nets +2', 'addrs +1', 'nets -2', 'rules -2'])
    expect(['nets', 'addrs'].map((table) => holds.removals(table))).toEqual([undefined, undefined])
    expect([...tables.addrs.excessKeys()].map((key) => key === parseAddr('10.9.0.1'))).toEqual([true])
    expect(plane.epoch.dueMs).toBe(0)
  })

  test('takes the place of what was wanted before, also of steps that never came to be', () => {
    take(FIRST, true)
    maps.rules.broken.add(rulesKey(2))
    take([
      { kind: 'add', rows: [rule(A, 2)] },
      { kind: 'switch', rows: [end('10.1.0.1', 9, A)] },
    ])
    expect(take(FIRST, true).failures).toEqual([])
    expect([plane.queue.isWhole, endAt('10.1.0.1')?.identity, tables.rules.pending]).toEqual([true, 4, { updates: 0, deletes: 0 }])
  })

  test('that is stuck keeps rows of which only half is known', async () => {
    take(FIRST, true)
    await start()
    maps.rules.broken.add(textWriter(bindDeclared(catalogue.np_rules, btf).key)({ set: B, index: 0 }))
    take(
      [
        { kind: 'add', rows: [rule(B, 0)] },
        { kind: 'switch', rows: [end('10.9.0.1', 6)] },
      ],
      true,
    )
    join.want(parseAddr('10.9.0.1'), textWriter(addrs.value)(addrInfo(2)))
    tables.addrs.applyUpdates(policyHolds(plane, { writes: () => undefined, removals: () => undefined }).writes('addrs'))
    expect(endAt('10.9.0.1')).toMatchObject({ kind: 0, identity: 5 })
  })
})

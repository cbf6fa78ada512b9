// SPDX-License-Identifier: Apache-2.0
/** An agent that comes back to another world: row by row, every packet is judged as it was or as it is to be.
 * Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { rowKey } from '#agent/compile/policy/tables.ts'
import type { PolicyRowOf, PolicyStep } from '#agent/compile/policy/tables.ts'
import { restartSteps, type KernelPolicy } from '#agent/compile/policy/transition/restart.ts'
import { hostSlots } from '#agent/compile/policy/transition/slots.ts'
import type { PolicyTables } from '#agent/policy/table-rows.ts'
import { parseCidr } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { NetworkSet, Policy } from '#lib/model/policy.ts'
import { ALL, equals } from '#lib/model/selector/selector.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { dense, HOST, isSent, podOf, type Dense } from '../dense.ts'
import { Follower } from '../follower.ts'

const NODE = 'n1'
const WORLDS: readonly (readonly [string, Dense])[] = [
  ['IPv4', dense(true, [80])],
  ['IPv6', dense(false, [80])],
]
const RUNS = Number(process.env['RUNS'] ?? 40)
const TIMEOUT = Math.max(60_000, RUNS * 200)

function compiled(objects: readonly KubeObject[]): { readonly steps: readonly PolicyStep[]; readonly tables: PolicyTables } {
  const follower = new Follower(NODE)
  const steps = follower.change(objects)
  follower.tables.apply(steps)
  return { steps, tables: follower.tables }
}

function inKernel(tables: PolicyTables): KernelPolicy {
  const rows = [...tables.rows.values()]
  const ends = rows.flatMap((row) => (row.table === 'ends' ? [[row.key.addr, row.value] as const] : []))
  return {
    bits: () => rows.filter((row): row is PolicyRowOf<'bits'> => row.table === 'bits'),
    nets: rows.filter((row): row is PolicyRowOf<'nets'> => row.table === 'nets'),
    ends: new Map(ends),
    hostSets: new Set(rows.flatMap((row) => (row.table === 'hosts' ? hostSlots(row.value) : []))),
  }
}

function judgeAll(tables: PolicyTables, packets: readonly Packet[]): readonly string[] {
  const follower = new Follower(NODE)
  for (const row of tables.rows.values()) follower.tables.write(row, false)
  return packets.flatMap((one) => (['ingress', 'egress'] as const).map((direction) => follower.action(one, { direction })))
}

/** Untracked and after that, at the host's device. */
function judgeAtHost(tables: PolicyTables, packets: readonly Packet[]): readonly string[] {
  const follower = new Follower(NODE)
  for (const row of tables.rows.values()) follower.tables.write(row, false)
  return packets.flatMap((packet) =>
    (['ingress', 'egress'] as const).map((direction) =>
      [false, true].map((ofHost) => follower.hostActions(HOST, { direction, packet, before: packet, ofHost }).join()).join(),
    ),
  )
}

/** Not every pod is there. */
function someOf(world: Dense['world']): Dense['world'] {
  return fc
    .tuple(world, fc.subarray([0, 1, 2, 3, 4], { minLength: 2 }))
    .map(([objects, kept]) => objects.filter(({ kind }, at) => kind !== 'Pod' || kept.includes(at)))
}

type Pair = readonly [old: readonly KubeObject[], now: readonly KubeObject[]]

/** Two worlds that have nothing to do with each other, or a world and one in which some things are different. */
function pairOf(world: Dense['world'], batch: Dense['batch']): fc.Arbitrary<Pair> {
  const some = someOf(world)
  const isNamed = (all: readonly KubeObject[], { kind, name }: KubeObject): boolean =>
    all.some((one) => one.kind === kind && one.name === name)
  const changed = fc.tuple(some, batch).map(([old, { put, gone }]) => {
    const kept = old.filter((one) => !isNamed(put, one) && !isNamed(gone, one))
    return [old, [...kept, ...put]] as const
  })
  return fc.oneof(fc.tuple(some, some), changed)
}

function podsOf(objects: readonly KubeObject[]): ReadonlySet<Addr> {
  return new Set(objects.flatMap((object) => (object.kind === 'Pod' ? object.podIPs : [])))
}

type Judge = typeof judgeAll

function checkRowByRow(judge: Judge, all: readonly Packet[], [old, now]: Pair): void {
  const packets = all.filter((one) => isSent(one, podsOf(old), podsOf(now)))
  const { tables } = compiled(old)
  const whole = compiled(now)
  const known = new Set(tables.rows.keys())
  const [before, after] = [judge(tables, packets), judge(whole.tables, packets)]
  for (const step of restartSteps(whole.steps, inKernel(tables))) {
    if (step.kind === 'epoch') continue
    expect(new Set(step.rows.map(rowKey)).size, 'distinct rows').toBe(step.rows.length)
    for (const row of step.rows) {
      tables.write(row, step.kind === 'delete')
      if (step.kind === 'add') continue
      for (const [at, verdict] of judge(tables, packets).entries())
        if (verdict !== before[at] && verdict !== after[at]) expect({ packet: packets[at >> 1], verdict }).toBe('as before or as after')
    }
  }
  // what is wanted, and of what was there only what a sweep takes
  for (const [key, row] of whole.tables.rows) expect(tables.rows.get(key)).toEqual(row)
  expect([...tables.rows.keys()].filter((key) => !whole.tables.rows.has(key) && !known.has(key))).toEqual([])
}

test.each(WORLDS)('an agent that starts changes policy row by row, %s', { timeout: TIMEOUT }, (_, { world, batch, packets }) => {
  fc.assert(
    fc.property(pairOf(world, batch), (pair) => {
      checkRowByRow(judgeAll, packets, pair)
    }),
    { numRuns: RUNS },
  )
})

test.each(WORLDS)(
  'an agent that starts changes policy of a host endpoint row by row, %s',
  { timeout: TIMEOUT },
  (_, { hostWorld, hostBatch, packets }) => {
    fc.assert(
      fc.property(pairOf(hostWorld, hostBatch), (pair) => {
        checkRowByRow(
          judgeAtHost,
          packets.filter((_one, at) => at % 3 === 0),
          pair,
        )
      }),
      { numRuns: Math.ceil(RUNS / 5) },
    )
  },
)

const FROM_ONE = { ...ANYWHERE, selector: equals('app', '1') }
const POLICY: Policy = {
  ...{ kind: 'GlobalNetworkPolicy', namespace: '', name: 'a', tier: 'default', order: 1, staged: undefined, scope: 'normal' },
  ...{ subject: ALL, egress: undefined, ingress: [ruleOf(0, { action: 'allow', source: FROM_ONE })] },
}
const ON_A_PORT: Policy = {
  ...POLICY,
  ingress: [ruleOf(0, { action: 'allow', protocols: [6], source: FROM_ONE, destination: { ...ANYWHERE, ports: [{ from: 80, to: 80 }] } })],
}
const setOf = (cidr: string): NetworkSet => ({
  ...{ kind: 'GlobalNetworkSet', namespace: '', name: 's', labels: new Map([['app', '1']]) },
  nets: [parseCidr(cidr)],
})

test.each<readonly [string, readonly KubeObject[]]>([
  ['a set is narrower: a prefix gets a row of its own, and says what the one around it said', [setOf('10.0.0.0/24')]],
  ['a set is gone, and a pod has its label', [podOf('10.0.1.2', '1')]],
])('an agent that starts with other rulesets, and %s', (_, changed) => {
  const pods = ['10.0.0.1', '10.0.0.2'].map((ip) => podOf(ip, '2'))
  checkRowByRow(judgeAll, dense(true, [80]).packets, [
    [...pods, POLICY, setOf('10.0.0.0/8')],
    [...pods, ON_A_PORT, ...changed],
  ])
})

test('an agent that starts while one endpoint stays with a ruleset that others leave and take', () => {
  const egress = [ruleOf(0, { action: 'allow', source: { ...ANYWHERE, selector: equals('app', '2') }, destination: FROM_ONE })]
  const pods = [podOf('10.0.0.2', '2'), podOf('10.0.0.3', '1'), podOf('10.0.1.2', '1'), { ...POLICY, egress }]
  const everywhere = { ...setOf('0.0.0.0/0'), labels: new Map([['app', '2']]) }
  checkRowByRow(judgeAll, dense(true, [80]).packets, [
    [podOf('10.0.0.1', '2'), ...pods],
    [...pods, podOf('10.0.0.1', '1'), everywhere],
  ])
})

test.each<readonly [string, readonly KubeObject[], readonly KubeObject[]]>([
  ['gets a network set’s labels', [], [setOf('10.0.0.0/24')]],
  ['and its address have a network set’s labels', [], [setOf('10.0.0.0/24'), { ...setOf('10.0.0.2/32'), name: 't' }]],
  ['gets a network set’s labels, which the address had', [setOf('10.0.0.2/32')], [setOf('10.0.0.0/24')]],
  [
    'gets a network set’s labels, which the address keeps',
    [setOf('10.0.0.2/32')],
    [setOf('10.0.0.2/32'), { ...setOf('10.0.0.0/24'), name: 't' }],
  ],
])('an agent that starts with a new pod, while the prefix around it %s', (_, had, gets) => {
  const to = (value: string) => ({ ...ANYWHERE, selector: equals('app', value) })
  const egress = [ruleOf(0, { action: 'deny', destination: to('3') }), ruleOf(1, { action: 'allow', destination: to('1') })]
  const both = [podOf('10.0.0.1', '2'), { ...POLICY, subject: equals('app', '2'), ingress: undefined, egress }]
  const closed = { ...POLICY, name: 'b', subject: equals('app', '3'), ingress: [] }
  checkRowByRow(judgeAll, dense(true, [80]).packets, [
    [...both, closed, ...had],
    [...both, closed, ...gets, podOf('10.0.0.2', '3')],
  ])
})

test.each(WORLDS)('the same world again: the same steps, %s', (_, { oneSided }) => {
  fc.assert(
    fc.property(oneSided, (objects) => {
      const { steps, tables } = compiled(objects)
      expect(restartSteps(steps, inKernel(tables))).toBe(steps)
    }),
    { numRuns: 20 },
  )
})

// SPDX-License-Identifier: Apache-2.0
/** Policies of one namespace keep no other namespace's policies out of a node's tables. Layer: test. */
import { ruleOf } from '#lib/model/policy.ts'
import { describe, expect, test } from 'vitest'
import { TABLE_SIZES } from '#agent/compile/policy/rulesets/policy-quota.ts'
import type { Rows } from '#agent/compile/policy/rulesets/policy-quota.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import type { Policy, Rule } from '#lib/model/policy.ts'
import { equals, has } from '#lib/model/selector/selector.ts'
import { builtObject, declaredMaps } from '../../../../support/compiled.ts'
import { fromEach, fromNets, gone, NAMESPACE, RoomNode, spacePod, spacePolicy, times } from './policy-quota-world.ts'
import { fromSide, policyUpdate, toPorts } from '../../../../../testkit/policy/scale.ts'

/** Room for everything but what is named. */
function small(of: Partial<Rows>): Rows {
  return { rules: 10_000, ports: 10_000, pages: 10_000, bits: 10_000, nets: 10_000, ...of }
}

const host = (at: number, net = 0): string => `198.51.${net * 16 + (at >> 8)}.${at & 255}/32`
const hosts = (count: number, net = 0): readonly string[] => times(count, (at) => host(at, net))
const HERE = '10.0.2.1'
/** of namespace shop, before anything else: all may come, the client by a rule of its own */
const shop: readonly PolicyUpdate[] = [
  policyUpdate(
    spacePolicy('shop', {
      ingress: [ruleOf(0, { source: fromSide(equals('app', 'client')) }), ruleOf(1, { source: fromNets(['0.0.0.0/0']) })],
    }),
  ),
  spacePod('shop', { app: 'web', ip: HERE }),
  spacePod('shop', { app: 'client', ip: '10.0.2.9', local: false }),
]
const denies = (namespace: string): Policy => spacePolicy(namespace, { name: 'all', ingress: fromEach(['192.0.2.7/32']) })
const FROM_CLIENT = 'allow by KubernetesNetworkPolicy/shop/all ingress 0'
const OPEN = 'allow by KubernetesNetworkPolicy/shop/all ingress 1'
const END = 'deny by Tier/default ingress end'
const NO_ROOM = 'deny by no room'
const FULL = { bad: '10.0.1.1' }
const badPods = (count: number): readonly PolicyUpdate[] => times(count, (at) => spacePod('bad', { app: `a${at}`, ip: `10.0.1.${at + 1}` }))
const badPolicies = (count: number, ingress: (at: number) => readonly Rule[]): readonly Policy[] =>
  times(count, (at) => spacePolicy('bad', { app: `a${at}`, ingress: ingress(at) }))
const inParts = (count: number): readonly Rule[] => times(count, (at) => ruleOf(at, { protocols: [6], destination: toPorts(at * 300 + 7) }))

test('the tables are as large as the programs have them', () => {
  const maps = declaredMaps(builtObject('tc').btf)
  expect(Object.fromEntries(Object.keys(TABLE_SIZES).map((table) => [table, maps.get(`np_${table}`)?.maxEntries]))).toEqual(TABLE_SIZES)
})

describe('a namespace that would fill a table is closed, and no other;', () => {
  test.each<[string, Partial<Rows>, readonly Policy[]]>([
    ['rules', { rules: 100 }, badPolicies(5, (at) => fromEach(hosts(20, at)))],
    ['ports', { ports: 20 }, badPolicies(6, () => times(3, (at) => ruleOf(at, { protocols: [6 + at], source: fromNets(hosts(1)) })))],
    ['pages', { pages: 40 }, badPolicies(2, () => inParts(30))],
    ['bits', { bits: 160 }, badPolicies(1, () => times(90, (at) => ruleOf(at, { protocols: [6], destination: toPorts(at * 3) })))],
    ['nets', { nets: 100 }, badPolicies(2, (at) => [ruleOf(0, { source: fromNets(hosts(40, at)) })])],
    ['bits', { bits: 200 }, badPolicies(3, () => fromEach(hosts(40)))],
  ])('%s of %o', (table, sizes, policies) => {
    const node = new RoomNode(small(sizes))
    expect(node.take([...shop, ...badPods(6)])).toEqual([])
    expect([node.ask('10.0.2.9', HERE), node.ask('192.0.2.9', HERE), node.ask('192.0.2.9', FULL.bad)]).toEqual([FROM_CLIENT, OPEN, 'allow'])
    expect(node.take(policies.map(policyUpdate))).toEqual([])
    expect(node.closed).toEqual([`bad: ${table}`])
    expect([node.ask('10.0.2.9', HERE), node.ask('192.0.2.9', HERE), node.ask('192.0.2.9', FULL.bad)]).toEqual([FROM_CLIENT, OPEN, NO_ROOM])
    // a deny policy that is created afterwards takes effect
    expect(node.take([policyUpdate(denies('shop'))])).toEqual([])
    expect([node.ask('192.0.2.7', HERE), node.ask('192.0.2.9', HERE)]).toEqual(['allow by KubernetesNetworkPolicy/shop/all ingress 0', END])
    // and a namespace that wants less has its rules again
    expect(node.take(policies.slice(1).map(gone))).toEqual([])
    expect(node.take([policyUpdate(spacePolicy('bad', { app: 'a0', ingress: fromEach(hosts(1)) }))])).toEqual([])
    expect([node.closed, node.ask('192.0.2.9', FULL.bad), node.ask('198.51.0.0', FULL.bad)]).toEqual([
      [],
      END,
      'allow by KubernetesNetworkPolicy/bad/a0 ingress 0',
    ])
  })
})

test('what is closed is named: the policies of that namespace that select something here', () => {
  const node = new RoomNode(small({ rules: 100 }))
  const elsewhere = spacePolicy('bad', { app: 'not-here', ingress: fromEach(hosts(1)) })
  node.take([...shop, ...badPods(5), policyUpdate(elsewhere), ...badPolicies(5, (at) => fromEach(hosts(20, at))).map(policyUpdate)])
  const policies = times(5, (at) => `KubernetesNetworkPolicy/bad/a${at}`)
  expect(node.compiler.noRoom).toEqual([{ namespace: 'bad', table: 'rules', sets: false, most: 50, policies }])
})

test('of several the one that wants most is closed, of equal ones the first by name, until the others fit', () => {
  const node = new RoomNode(small({ rules: 100 }))
  const wants = { a: 10, b: 30, c: 30, d: 5 }
  const policies = Object.entries(wants).map(([namespace, count], at) => spacePolicy(namespace, { ingress: fromEach(hosts(count, at)) }))
  node.take([
    ...policies.map(policyUpdate),
    ...Object.keys(wants).map((namespace, at) => spacePod(namespace, { app: 'x', ip: `10.0.${at}.1` })),
  ])
  expect(node.closed).toEqual(['b: rules'])
  node.take([policyUpdate(spacePolicy('d', { ingress: fromEach(hosts(25, 9)) }))])
  expect(node.closed).toEqual(['b: rules', 'c: rules'])
  node.take(policies.slice(2, 3).map(gone))
  expect(node.closed).toEqual(['b: rules'])
})

test("the cluster's own policies have what they need, and leave namespaces a quarter", () => {
  const node = new RoomNode(small({ rules: 100 }))
  const cluster = (count: number): PolicyUpdate => {
    const policy: Policy = {
      ...spacePolicy('', { ingress: fromEach(hosts(count, 8)) }),
      kind: 'GlobalNetworkPolicy',
      subject: equals(NAMESPACE, 'free'),
    }
    return policyUpdate(policy)
  }
  const one = policyUpdate(spacePolicy('shop', { ingress: fromEach(hosts(21)) }))
  const other = policyUpdate(spacePolicy('bad', { ingress: fromEach(hosts(22, 1)) }))
  node.take([one, other, cluster(2), spacePod('free', { app: 'x', ip: '10.0.3.1' }), ...shop.slice(1), ...badPods(1)])
  expect(node.closed).toEqual([])
  node.take([cluster(10)])
  expect(node.closed).toEqual(['bad: rules'])
  node.take([cluster(95)])
  expect([node.closed, node.ask('198.51.128.94', '10.0.3.1')]).toEqual([['bad: rules'], expect.stringMatching(/^allow by Global.* 94$/)])
})

describe('questions multiply rows of others:', () => {
  const parts = (bits: number, from = 0): readonly Rule[] =>
    times(bits, (bit) => {
      const nets = times(64, (at) => at).flatMap((at) => (((at >> (bit + from)) & 1) === 1 ? [`10.9.0.${at}/32`] : []))
      return ruleOf(bit, { source: fromNets(nets) })
    })
  const everybody = times(64, (at) => spacePod('many', { app: 'x', ip: `10.9.0.${at}`, local: false }))
  const fromAll = times(10, (at) => `s${at}`).flatMap((namespace, at) => [
    policyUpdate(spacePolicy(namespace, { ingress: [ruleOf(0, { source: fromSide(has(NAMESPACE)) })] })),
    spacePod(namespace, { app: 'x', ip: `10.0.5.${at + 1}` }),
  ])

  test('the namespace that asks for prefixes within those of others is closed, not the others', () => {
    const node = new RoomNode(small({ bits: 400 }))
    const wide = times(10, (at) => `s${at}`).map((namespace) =>
      policyUpdate(
        spacePolicy(namespace, {
          ingress: times(2, (at) => ruleOf(at, { source: fromNets([at === 0 ? '0.0.0.0/0' : `203.0.113.${namespace.slice(1)}/32`]) })),
        }),
      ),
    )
    node.take([...fromAll, ...wide, ...badPods(1)])
    expect(node.take([policyUpdate(spacePolicy('bad', { ingress: fromEach(hosts(19)) }))])).toEqual([])
    expect(node.closed).toEqual(['bad: bits'])
    expect([node.ask('198.51.0.3', '10.0.5.4'), node.ask('198.51.0.3', FULL.bad)]).toEqual([
      'allow by KubernetesNetworkPolicy/s3/all ingress 0',
      NO_ROOM,
    ])
  })

  test('the namespace whose rules split the pods of others is closed, not the others', () => {
    const node = new RoomNode(small({ bits: 400 }))
    node.take([...fromAll, ...everybody, ...badPods(1)])
    expect(node.take([policyUpdate(spacePolicy('bad', { ingress: parts(6) }))])).toEqual([])
    expect(node.closed).toEqual(['bad: bits'])
    expect([node.ask('10.9.0.3', '10.0.5.4'), node.ask('10.9.0.3', FULL.bad)]).toEqual([
      'allow by KubernetesNetworkPolicy/s3/all ingress 0',
      NO_ROOM,
    ])
    expect(node.take([policyUpdate(spacePolicy('bad', { ingress: parts(2) }))])).toEqual([])
    expect([node.closed, node.ask('10.9.0.2', FULL.bad)]).toEqual([[], 'allow by KubernetesNetworkPolicy/bad/all ingress 1'])
  })

  test('nobody looks whether a closed namespace fits before so many pods went that it may, and then at once', () => {
    const node = new RoomNode(small({ bits: 400 }))
    node.take([...fromAll, ...everybody, ...badPods(1), policyUpdate(spacePolicy('bad', { ingress: parts(6) }))])
    const stepsOf = (updates: readonly PolicyUpdate[]): number => {
      let steps = 0
      for (const work = node.compiler.slicedChange(updates); work.next().done !== true;) steps++
      return steps
    }
    const extra = spacePod('many', { app: 'x', ip: '10.9.1.1', local: false })
    const away = (pod: PolicyUpdate): PolicyUpdate => ({ kind: 'endpoint', key: pod.key, value: undefined })
    const opening = stepsOf([policyUpdate(spacePolicy('bad', { ingress: parts(5) }))])
    expect(node.closed).toEqual(['bad: bits'])
    for (const [few, pods] of [
      ['one that comes', [extra]],
      ['one that goes', [away(extra)]],
    ] as const)
      expect(stepsOf(pods), few).toBeLessThan(opening / 4)
    expect(node.closed).toEqual(['bad: bits'])
    expect(node.take(everybody.map(away))).toEqual([])
    expect(node.closed).toEqual([])
  })

  test('where old and new questions would be too many together the namespace is closed between them', () => {
    const node = new RoomNode(small({ bits: 400 }))
    node.take([...fromAll, ...everybody, ...badPods(1), policyUpdate(spacePolicy('bad', { ingress: parts(3) }))])
    expect(node.closed).toEqual([])
    expect(node.take([policyUpdate(spacePolicy('bad', { ingress: parts(3, 3) }))])).toEqual([])
    expect([node.closed, node.ask('10.9.0.8', FULL.bad)]).toEqual([[], 'allow by KubernetesNetworkPolicy/bad/all ingress 0'])
  })
})

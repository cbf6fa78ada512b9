// SPDX-License-Identifier: Apache-2.0
/** Network sets of one namespace keep no other namespace's policies out of a node's tables. Layer: test. */
import { expect, test } from 'vitest'
import { TABLE_SIZES } from '#agent/compile/policy/rulesets/policy-quota.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import { parseCidr } from '#lib/base/ip.ts'
import { ruleOf } from '#lib/model/policy.ts'
import { equals, has } from '#lib/model/selector/selector.ts'
import { fromEach, NAMESPACE, RoomNode, spacePod, spacePolicy, times } from './policy-quota-world.ts'
import { fromSide, policyUpdate } from '../../../../../testkit/policy/scale.ts'

const SIZES = { ...TABLE_SIZES, nets: 100 }
const HERE = { shop: '10.0.2.1', bad: '10.0.1.1' }
const ALLOW = 'allow by KubernetesNetworkPolicy'
const END = 'deny by Tier/default ingress end'

/** Of role x. `net`: the third byte of its prefixes. */
function set(namespace: string, net: number, count: number): PolicyUpdate {
  const labels = new Map(Object.entries({ ...(namespace === '' ? {} : { [NAMESPACE]: namespace }), role: 'x', name: `${net}` }))
  const value = count === 0 ? undefined : { labels, nets: times(count, (at) => parseCidr(`198.51.${net}.${at}/32`)) }
  return { kind: 'set', key: `NetworkSet/${namespace}/${net}`, value }
}

const asks = (namespace: string, label = 'role'): PolicyUpdate =>
  policyUpdate(spacePolicy(namespace, { ingress: [ruleOf(0, { source: fromSide(label === 'role' ? equals('role', 'x') : has(label)) })] }))
const pods = [spacePod('shop', { app: 'web', ip: HERE.shop }), spacePod('bad', { app: 'a', ip: HERE.bad })]
const denies = policyUpdate(spacePolicy('shop', { name: 'some', ingress: fromEach(['192.0.2.7/32']) }))

test('a namespace whose own policies ask for too large sets is closed, and no other', () => {
  const node = new RoomNode(SIZES)
  expect(node.take([...pods, set('bad', 1, 20), set('bad', 2, 20), asks('bad')])).toEqual([])
  expect([node.closed, node.ask('198.51.2.3', HERE.bad)]).toEqual([[], `${ALLOW}/bad/all ingress 0`])
  expect(node.take([set('bad', 2, 60)])).toEqual([])
  expect([node.closed, node.ask('198.51.2.3', HERE.bad)]).toEqual([['bad: nets'], 'deny by no room'])
  // a deny policy that is created afterwards takes effect
  expect(node.take([denies])).toEqual([])
  expect(['192.0.2.7', '192.0.2.8'].map((src) => node.ask(src, HERE.shop))).toEqual([`${ALLOW}/shop/some ingress 0`, END])
  // and a namespace whose sets are smaller has its rules again
  expect(node.take([set('bad', 2, 0)])).toEqual([])
  expect([node.closed, node.ask('198.51.1.3', HERE.bad)]).toEqual([[], `${ALLOW}/bad/all ingress 0`])
})

test('who asks for sets of another namespace is not closed where they are too large: they count for nothing', () => {
  const node = new RoomNode(SIZES)
  expect(node.take([...pods, asks('shop', NAMESPACE), set('bad', 1, 60), set('shop', 3, 10)])).toEqual([])
  expect(node.closed).toEqual(['bad: nets'])
  expect(['198.51.1.3', '198.51.3.3', HERE.bad].map((src) => node.ask(src, HERE.shop))).toEqual([
    END,
    `${ALLOW}/shop/all ingress 0`,
    `${ALLOW}/shop/all ingress 0`,
  ])
  expect(node.take([denies, set('bad', 1, 35)])).toEqual([])
  expect([node.closed, node.ask('198.51.1.3', HERE.shop)]).toEqual([[], `${ALLOW}/shop/all ingress 0`])
})

test('of several namespaces the one with the largest sets is told, and those of which nothing is asked are not counted', () => {
  const node = new RoomNode(SIZES)
  const sets = [set('a', 1, 20), set('b', 2, 30), set('c', 3, 20), set('', 4, 25)]
  const unasked: PolicyUpdate = {
    kind: 'set',
    key: 'NetworkSet/shop/9',
    value: { labels: new Map([['other', 'y']]), nets: times(90, (at) => parseCidr(`203.0.113.${at}/32`)) },
  }
  expect(node.take([...pods, asks('shop'), ...sets, unasked])).toEqual([])
  expect(node.closed).toEqual(['b: nets', 'a: nets'])
  expect(['198.51.1.3', '198.51.2.3', '198.51.3.3', '198.51.4.3'].map((src) => node.ask(src, HERE.shop).split(' ')[0])).toEqual([
    'deny',
    'deny',
    'allow',
    'allow',
  ])
})

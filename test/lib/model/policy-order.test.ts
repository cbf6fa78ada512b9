// SPDX-License-Identifier: Apache-2.0
/** In which order tiers and policies are asked. Layer: test. */
import { expect, test } from 'vitest'
import { comparePolicies, tiersInOrder } from '#lib/model/policy-order.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { kubernetesPolicy, model, v3 } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

const policy = (manifest: Manifest): Policy => {
  const object: KubeObject = model(manifest)
  if ('subject' in object) return object
  throw new Error(`${object.kind} is no policy`)
}

test('policies go by order, then the cluster’s before those of namespaces, then by namespace, kind and name', () => {
  const inOrder = [
    policy(v3('GlobalNetworkPolicy', 'early', { order: -1.5 })),
    policy(v3('NetworkPolicy', 'b/first', { order: 10 })),
    policy(v3('GlobalNetworkPolicy', 'z', { order: 1000 })),
    policy(v3('NetworkPolicy', 'a/y', { order: 1000 })),
    policy(v3('StagedNetworkPolicy', 'a/z', { order: 1000 })),
    policy(kubernetesPolicy('a/b')),
    policy(kubernetesPolicy('b/a')),
    policy(v3('GlobalNetworkPolicy', 'late-a')),
    policy(v3('GlobalNetworkPolicy', 'late-b')),
  ]
  expect([...inOrder].reverse().sort(comparePolicies).map(refText)).toEqual(inOrder.map(refText))
})

test('tiers go by order, with those that are always there', () => {
  const ops = { kind: 'Tier', namespace: '', name: 'ops', order: 10, end: 'pass' } as const
  const last = { ...ops, name: 'last', order: Number.POSITIVE_INFINITY }
  const tiers = tiersInOrder(new Map([last, ops].map((tier) => [tier.name, tier])))
  expect(tiers.map(({ name }) => name)).toEqual(['ops', 'adminnetworkpolicy', 'default', 'baselineadminnetworkpolicy', 'last'])
})

// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { podsAndPoliciesOf, servicesOf, statusOf } from '../../../bench/scale/objects.ts'

test('two pods a service, a policy for ten, nothing that the server itself would give, and no kind that it does not have', () => {
  const services = [...servicesOf(100)]
  expect([...new Set(services.map(({ kind }) => kind))].sort()).toEqual([
    'EndpointSlice',
    'Namespace',
    'Node',
    'NodeNetwork',
    'Service',
    'Tier',
  ])
  const objects = [...services, ...podsAndPoliciesOf(100)]
  const kinds = new Map<string, number>()
  for (const { apiVersion, kind } of objects) kinds.set(`${apiVersion} ${kind}`, (kinds.get(`${apiVersion} ${kind}`) ?? 0) + 1)
  expect(Object.fromEntries(kinds)).toMatchObject({
    'v1 Service': 100,
    'discovery.k8s.io/v1 EndpointSlice': 100,
    'v1 Pod': 200,
    'v1 Node': 20,
    'netplane.io/v3 NodeNetwork': 20,
  })
  expect(objects.length).toBe(100 + 100 + 200 + 20 + 20 + 50 + 2 + 10)
  expect(objects.filter(({ metadata }) => 'resourceVersion' in metadata || 'uid' in metadata)).toEqual([])
  expect(objects.filter(({ kind }) => kind === 'ClusterNetworkPolicy')).toEqual([])
  expect(objects.filter((object) => statusOf(object) !== undefined).length).toBe(200 + 20)
})

// SPDX-License-Identifier: Apache-2.0
/** What a balancer makes of a service, from its first wish to its end. Layer: test. */
import { expect, test } from 'vitest'
import { balancedOf, patchesOf } from '../../../testkit/kubernetes/balancing.ts'

const MARK = 'service.kubernetes.io/load-balancer-cleanup'
const ADDRESS = '192.0.2.1'

function service(parts: { type: string; marks?: string[]; address?: string; deleted?: boolean; spec?: object }): object {
  const { marks = [], address, deleted = false } = parts
  return {
    metadata: { namespace: 'n', name: 's', finalizers: marks, ...(deleted ? { deletionTimestamp: '2020-01-01T00:00:00Z' } : {}) },
    spec: { type: parts.type, ...parts.spec },
    status: { loadBalancer: address === undefined ? {} : { ingress: [{ ip: address }] } },
  }
}

test.each([
  ['wants one', service({ type: 'LoadBalancer' }), ADDRESS, [[ADDRESS], [MARK]]],
  ['has one', service({ type: 'LoadBalancer', marks: [MARK], address: ADDRESS }), ADDRESS, []],
  ['wants none any more', service({ type: 'ClusterIP', marks: ['other', MARK], address: ADDRESS }), undefined, [[], ['other']]],
  ['ends', service({ type: 'LoadBalancer', marks: [MARK], address: ADDRESS, deleted: true }), undefined, [[], []]],
])('a service that %s has these patches', (...row) => {
  const [, object, address, [ips, marks] = []] = row
  const [found] = balancedOf([object])
  const status = { path: '/api/v1/namespaces/n/services/s/status' }
  const ingress = ips?.map((ip) => ({ ip }))
  expect(found && patchesOf(found, address)).toEqual([
    ...(ips === undefined ? [] : [{ ...status, patch: { status: { loadBalancer: ips.length === 0 ? null : { ingress } } } }]),
    ...(marks === undefined ? [] : [{ path: '/api/v1/namespaces/n/services/s', patch: { metadata: { finalizers: marks } } }]),
  ])
})

test('services of other balancers are left alone', () => {
  const classed = service({ type: 'LoadBalancer', spec: { loadBalancerClass: 'example.com/other' } })
  expect(balancedOf([service({ type: 'ClusterIP' }), classed])).toEqual([])
})

test('a node is asked where the service says, and a client kept where it wants', () => {
  const local = service({ type: 'LoadBalancer', spec: { healthCheckNodePort: 31000, sessionAffinity: 'ClientIP' } })
  expect(balancedOf([local, service({ type: 'LoadBalancer' })])).toMatchObject([
    { healthPort: 31000, sticky: true },
    { healthPort: 10256, sticky: false },
  ])
})

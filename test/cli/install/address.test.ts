// SPDX-License-Identifier: Apache-2.0
/** Which addresses are no direct way to the API server, each by name. Layer: test. */
import { expect, test } from 'vitest'
import { refusalOf } from '../../../cli/install/address.ts'
import { node, PLANE, pod, service } from './platforms.ts'

const WORLD = {
  nodes: [node('m1', ['192.0.2.1', '2001:db8::1'], PLANE), node('m2', ['192.0.2.2'], PLANE), node('w1', ['192.0.2.11'])],
  services: [service('default', 'kubernetes', ['10.96.0.1', 'fd00:96::1']), service('shop', 'db', ['None'])],
  pods: [pod('web-1', '10.0.1.5'), pod('api', '192.0.2.11', { hostNetwork: true })],
}

test.each([
  ['127.0.0.1', 'is a loopback address'],
  ['127.1.2.3', 'is a loopback address'],
  ['::1', 'is a loopback address'],
  ['0:0:0:0:0:0:0:1', 'is a loopback address'],
  ['0.0.0.0', 'is a loopback address'],
  ['::', 'is a loopback address'],
  ['localhost', 'is a loopback address'],
  ['api.localhost', 'is a loopback address'],
  ['kubernetes', 'is the name of a service'],
  ['kubernetes.default', 'is the name of a service'],
  ['kubernetes.default.svc', 'is the name of a service'],
  ['kubernetes.default.svc.cluster.local', 'is the name of a service'],
  ['10.96.0.1', 'is the ClusterIP of service default/kubernetes'],
  ['fd00:96:0::1', 'is the ClusterIP of service default/kubernetes'],
  ['10.0.1.5', 'is the address of pod shop/web-1'],
  ['192.0.2.1', 'is the address of node m1 alone, and 2 nodes have API servers: put a load balancer before them'],
  ['2001:DB8::1', 'is the address of node m1 alone'],
])('%s %s', (host, reason) => {
  expect(refusalOf(host, WORLD)).toContain(reason)
})

test.each(['api.internal.example.com', 'api.svcs.example.com', 'kubernetes.example.com', '192.0.2.100', '192.0.2.11', '2001:db8::100'])(
  '%s may be',
  (host) => {
    expect(refusalOf(host, WORLD)).toBeUndefined()
  },
)

test('the only control-plane node may be by its address', () => {
  expect(refusalOf('192.0.2.1', { ...WORLD, nodes: WORLD.nodes.filter(({ metadata }) => metadata.name !== 'm2') })).toBeUndefined()
})

// SPDX-License-Identifier: Apache-2.0
/** Whose an endpoint's addresses are. Layer: test. */
import { expect, test } from 'vitest'
import { endpointOwner, podRanges, type EndpointOwner } from '#lib/preflight/endpoint-owner.ts'
import type { RawObject } from '#lib/preflight/results.ts'

const PLANE = 'node-role.kubernetes.io/control-plane'
const OLD_PLANE = 'node-role.kubernetes.io/master'

/** The third address is for those outside. */
function node(name: string, addresses: readonly string[], more: { readonly label?: string; readonly spec?: object } = {}): RawObject {
  const told = addresses.map((address, at) => ({ type: at < 2 ? 'InternalIP' : 'ExternalIP', address }))
  const labels = more.label === undefined ? {} : { [more.label]: '' }
  return { metadata: { name, labels }, spec: more.spec, status: { addresses: [...told, { type: 'Hostname', address: name }] } }
}

const pod = (name: string, ips: readonly string[], hostNetwork = false): RawObject => ({
  metadata: { namespace: 'shop', name },
  spec: { hostNetwork },
  status: { podIPs: ips.map((ip) => ({ ip })) },
})
const pool = (name: string, cidr: string, allowedUses?: readonly string[]): RawObject => ({
  metadata: { name },
  spec: { cidr, ...(allowedUses === undefined ? {} : { allowedUses }) },
})

const NODES = [
  node('m1', ['192.0.2.1', '2001:db8::1', '198.51.100.1'], { label: PLANE }),
  node('m2', ['192.0.2.2', '10.28.3.2'], { label: OLD_PLANE }),
  node('w1', ['192.0.2.11'], { spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'] } }),
  node('w2', ['192.0.2.12'], { spec: { podCIDR: '10.244.2.0/24' } }),
]
const RANGES = podRanges(NODES, [
  pool('default', '10.28.0.0/16'),
  pool('services', '192.0.2.96/27', ['LoadBalancer']),
  pool('broken', '10.0.0.0/64'),
])
const PODS = [pod('web', ['10.7.0.5', 'fd00:7::5']), pod('api', ['192.0.2.11'], true)]

const of = (addresses: readonly string[]): EndpointOwner | undefined =>
  endpointOwner(addresses, { nodes: NODES, pods: PODS, ranges: RANGES })

test.each<readonly [string, readonly string[], EndpointOwner]>([
  ['of one node', ['192.0.2.1'], { kind: 'node', name: 'm1', planes: 2 }],
  ['of one node, both families', ['192.0.2.1', '2001:DB8:0::1'], { kind: 'node', name: 'm1', planes: 2 }],
  ['of one node, from outside', ['198.51.100.1'], { kind: 'node', name: 'm1', planes: 2 }],
  ['of one node, mapped', ['::ffff:192.0.2.1'], { kind: 'node', name: 'm1', planes: 2 }],
  ['of one node, and what it calls itself', ['127.0.1.1', '192.0.2.1'], { kind: 'node', name: 'm1', planes: 2 }],
  ['of a node with the older label, in a pool', ['10.28.3.2'], { kind: 'node', name: 'm2', planes: 2 }],
  ['of a pod', ['10.7.0.5'], { kind: 'pod', name: 'shop/web', address: '10.7.0.5' }],
  ['of a pod, its second', ['fd00:7:0::5'], { kind: 'pod', name: 'shop/web', address: 'fd00:7::5' }],
  ['of a pod beside a good one', ['192.0.2.100', '10.7.0.5'], { kind: 'pod', name: 'shop/web', address: '10.7.0.5' }],
  ['in a pool', ['10.28.9.9'], { kind: 'range', name: 'pool default', address: '10.28.9.9' }],
  ['in the range of a node', ['10.244.1.7'], { kind: 'range', name: 'pods of node w1', address: '10.244.1.7' }],
  ['in the only range of a node', ['10.244.2.7'], { kind: 'range', name: 'pods of node w2', address: '10.244.2.7' }],
  ['in the second range of a node', ['fd00:244:1::7'], { kind: 'range', name: 'pods of node w1', address: 'fd00:244:1::7' }],
])('%s', (_, addresses, owner) => {
  expect(of(addresses)).toEqual(owner)
})

test.each<readonly [string, readonly string[]]>([
  ['a balancer', ['192.0.2.90']],
  ['a balancer in a pool for balancers', ['192.0.2.100']],
  ['several nodes', ['192.0.2.1', '192.0.2.2']],
  ['one of several nodes, and a balancer', ['192.0.2.1', '192.0.2.90']],
  ['a worker, with a balancer of its own', ['192.0.2.11']],
  ['each node itself', ['127.0.0.1', '::1']],
  ['nothing', []],
])('%s is fine', (_, addresses) => {
  expect(of(addresses)).toBeUndefined()
})

// SPDX-License-Identifier: Apache-2.0
/** Ranges and addresses of a test cluster. Layer: test. */
import { expect, test } from 'vitest'
import { clusterAddresses, familiesOf } from '../../../testkit/kubernetes/cluster-addresses.ts'
import { kubeProxyObjects } from '../../../testkit/kubernetes/kube-proxy/objects.ts'

const V4 = /\d+\.\d+\.\d+\.\d+/

test('a cluster of IPv6 alone has the same of IPv6 as one of both families, and nothing of IPv4', () => {
  const [both, alone] = [clusterAddresses('both'), clusterAddresses('IPv6')]
  expect(JSON.stringify(alone)).not.toMatch(V4)
  expect(alone.podCidrs).toEqual(both.podCidrs.slice(1))
  expect(alone.serviceCidrs).toEqual(both.serviceCidrs.slice(1))
  expect(Object.keys(alone.nodes)).toEqual(Object.keys(both.nodes))
  for (const [node, addresses] of Object.entries(alone.nodes)) expect(addresses).toEqual(both.nodes[node]?.slice(1))
})

test.each(['both', 'IPv6'] as const)('nodes of a cluster tell its families: %s', (families) => {
  const nodes = Object.values(clusterAddresses(families).nodes).flat()
  expect(familiesOf(nodes.map((address) => `${address}/64`))).toBe(families)
})

test.each([
  ['both', '0.0.0.0'],
  ['IPv6', '::'],
] as const)('kube-proxy of a cluster with families %s listens at %s, as kubeadm has it', (families, bindAddress) => {
  const { podCidrs } = clusterAddresses(families)
  const endpoint = { host: 'api.test', port: 6443 }
  const text = JSON.stringify(kubeProxyObjects({ mode: 'nftables', image: 'kube-proxy', podCidrs, endpoint }))
  expect(text.replaceAll('\\', '')).toContain(`"bindAddress":"${bindAddress}"`)
})

// SPDX-License-Identifier: Apache-2.0
/** Addresses and veths of a lab. */
import { describe, expect, test } from 'vitest'
import { takeInventory } from '../../../lab/network/inventory.ts'
import { layOut, namespacesOf, type Topology, type TopologyOptions } from '../../../lab/network/topology.ts'
import { node, pod, TWO_NODES } from '../cluster.ts'

const OPTIONS: TopologyOptions = { lab: 't', client: [], mtu: 1400, underlayMtu: 1500, plain: false }

function lay(objects: readonly object[], options: Partial<TopologyOptions> = {}): Topology {
  return layOut(takeInventory(objects), { ...OPTIONS, ...options })
}

describe('two dual-stack nodes', () => {
  const topology = lay(TWO_NODES)
  test('nodes', () => {
    expect(topology.nodes.map(({ name, addresses, gateways, port }) => ({ name, addresses, gateways, port }))).toEqual([
      { name: 'a', addresses: ['172.31.7.2/24', 'fd00:31:7::2/64'], gateways: ['172.31.7.1', 'fd00:31:7::1'], port: 'p-a' },
      { name: 'b', addresses: ['172.31.7.3/24', 'fd00:31:7::3/64'], gateways: ['172.31.7.1', 'fd00:31:7::1'], port: 'p-b' },
    ])
  })
  test('client and router', () => {
    expect(topology.client).toMatchObject({ addresses: ['172.31.7.250/24', 'fd00:31:7::fa/64'], gateways: ['172.31.7.1', 'fd00:31:7::1'] })
    expect(topology.far.addresses).toEqual(['198.51.100.10/24', '2001:db8:6464::10/64'])
    expect(topology.fabric.addresses).toEqual(['172.31.7.1/24', 'fd00:31:7::1/64'])
  })
  test('pods', () => {
    expect(topology.pods[0]).toMatchObject({
      key: 'default/one',
      node: 'a',
      netns: 'nplab-t-pod-default.one',
      addresses: ['10.31.0.1', 'fd00:31::1'],
    })
    // sha1 of "default.one"
    expect(topology.pods[0]?.iface).toMatch(/^npl[0-9a-f]{11}$/)
  })
  test('namespaces', () => {
    expect(namespacesOf(topology)).toEqual([
      'nplab-t-fabric',
      'nplab-t-client',
      'nplab-t-far',
      'nplab-t-node-a',
      'nplab-t-node-b',
      'nplab-t-pod-default.one',
      'nplab-t-pod-default.two',
      'nplab-t-pod-shop.three',
    ])
  })
})

test('an address in use is given to no other host', () => {
  const topology = lay([node('a', '10.1.1.1'), node('b', '10.1.1.250')])
  expect(topology.fabric.addresses).toEqual(['10.1.1.254/24'])
  expect(topology.client.addresses).toEqual(['10.1.1.249/24'])
})

test('nodes of different subnets have a gateway each', () => {
  const topology = lay([node('a', '10.1.1.5'), node('b', '10.1.2.5')], { client: ['10.1.3.9'] })
  expect(topology.fabric.addresses).toEqual(['10.1.1.1/24', '10.1.2.1/24', '10.1.3.1/24'])
  expect([...topology.nodes, topology.client].map((host) => host.gateways)).toEqual([['10.1.1.1'], ['10.1.2.1'], ['10.1.3.1']])
})

test('a pod of the host network lives in its node', () => {
  const topology = lay([node('a', '10.1.1.5'), pod('default/host', 'a')])
  expect(topology.pods[0]).toMatchObject({ netns: 'nplab-t-node-a', iface: '', addresses: [] })
  expect(namespacesOf(topology)).not.toContain('nplab-t-pod-default.host')
})

test('a lab without a node is an error that says why', () => {
  expect(() => lay([node('bare')])).toThrow('no node among the manifests; node bare left out')
})

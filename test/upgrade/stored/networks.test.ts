// SPDX-License-Identifier: Apache-2.0
/** NodeNetworks of nodes whose agents are older. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { networkOf } from '../../../upgrade/stored/networks.ts'

const MAC = '66:0a:f5:01:00:01'

const block = (cidr: string, node: string) =>
  asApiObject({ apiVersion: 'netplane.io/v3', kind: 'IPAMBlock', metadata: { name: cidr.replaceAll(/\W/g, '-') }, spec: { cidr, node } })

const node = (annotations: Readonly<Record<string, string>>, spec: object = { podCIDRs: ['10.0.1.0/24'] }) =>
  asApiObject({
    ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a', uid: 'u1', labels: { zone: 'east' }, annotations }, spec },
    status: {
      addresses: [
        { type: 'InternalIP', address: '192.0.2.1' },
        { type: 'Hostname', address: 'a' },
      ],
    },
  })

test('the NodeNetwork of an older node has its addresses, ranges and labels, its blocks, and its ends of the tunnel', () => {
  const macs = { 'netplane.io/VXLANTunnelMACAddr': MAC.toUpperCase(), 'netplane.io/VXLANTunnelMACAddrV6': '66:0a:f5:01:00:02' }
  const blocks = [block('10.1.0.64/26', 'a'), block('10.1.0.0/26', 'a'), block('10.1.0.128/26', 'b')]
  expect(networkOf(node(macs), blocks)).toEqual({
    metadata: { name: 'a', ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'u1' }] },
    spec: {
      ...{ addresses: ['192.0.2.1'], podCIDRs: ['10.0.1.0/24'], blocks: ['10.1.0.0/26', '10.1.0.64/26'], labels: { zone: 'east' } },
      ...{ vxlanTunnelMACAddr: MAC, vxlanTunnelMACAddrV6: '66:0a:f5:01:00:02' },
    },
  })
})

test('an older node without a tunnel has no end of it, and one whose annotation is no address neither', () => {
  for (const annotations of [{}, { 'netplane.io/VXLANTunnelMACAddr': 'none' }])
    expect(Object.keys(networkOf(node(annotations), []).spec as object)).toEqual(['addresses', 'podCIDRs', 'blocks', 'labels'])
})

test('the NodeNetwork of a Node that cannot be read has nothing but its blocks', () => {
  expect(networkOf(node({}, { podCIDRs: ['x'] }), [block('10.1.0.0/26', 'a')]).spec).toMatchObject({ blocks: ['10.1.0.0/26'] })
})

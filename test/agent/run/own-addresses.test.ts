// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { ownNode } from '#lib/model/node.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { missingAddress, missingFamily } from '#agent/run/own-addresses.ts'
import { node, nodeNetwork, pod, pool, storeOf } from '../../support/build.ts'
import type { Manifest, NodeSpec } from '../../support/build.ts'

const V4 = { addresses: ['192.0.2.1'], podCIDRs: ['10.1.1.0/24'] }
const V6 = { addresses: ['2001:db8::1'], podCIDRs: ['fd00:1::/64'] }
const BOTH = { addresses: [...V4.addresses, ...V6.addresses], podCIDRs: [...V4.podCIDRs, ...V6.podCIDRs] }
const ranges4 = pool('v4', { cidr: '10.1.0.0/16' })
const ranges6 = pool('v6', { cidr: 'fd00::/48' })

function world(of: NodeSpec, ...others: readonly Manifest[]): Snapshot {
  return storeOf([node('n1', of), ...others]).snapshot
}

const block = nodeNetwork('n1', { ...V4, blocks: ['fd00:0:0:1::/122'] })
const elsewhere = [
  node('n2', BOTH),
  pool('none', { cidr: 'fd00:2::/64', disabled: true }),
  pool('others', { cidr: 'fd00:3::/64', nodeSelector: "zone == 'z'" }),
  pod('there', { node: 'n2', ips: ['10.1.2.3', 'fd00:1:2::3'] }),
  pod('agent', { node: 'n1', ips: ['192.0.2.1', '2001:db8::9'], hostNetwork: true }),
  pod('done', { node: 'n1', ips: ['10.1.1.9', 'fd00:1::9'], phase: 'Succeeded' }),
]

test.each<readonly [string, string | undefined, Snapshot]>([
  ['IPv4 alone', undefined, world(V4)],
  ['IPv4 alone, of a pool', undefined, world(V4, ranges4, pod('a', { node: 'n1', ips: ['10.1.1.3'] }))],
  ['IPv6 alone', undefined, world(V6, ranges6)],
  ['both', undefined, world(BOTH, ranges4, ranges6)],
  ['both, and pods of IPv4', undefined, world({ ...BOTH, podCIDRs: V4.podCIDRs })],
  ['an ExternalIP of the other', undefined, world({ ...BOTH, addresses: V4.addresses, external: V6.addresses })],
  ['what is not for its pods', undefined, world(V4, ...elsewhere)],
  ['neither', 'the Node has neither an InternalIP nor an ExternalIP', world({ podCIDRs: BOTH.podCIDRs })],
  ['a range', 'the Node has no IPv6 address, but fd00:1::/64 is a range of its pods', world({ ...V4, podCIDRs: BOTH.podCIDRs })],
  ['a range of IPv4', 'the Node has no IPv4 address, but 10.1.1.0/24 is a range of its pods', world({ ...V6, podCIDRs: BOTH.podCIDRs })],
  ['a block that it has taken', 'the Node has no IPv6 address, but fd00:0:0:1::/122 is a range of its pods', world(V4, block)],
  ['a pool', 'the Node has no IPv6 address, but IPPool v6 is for its pods', world(V4, ranges4, ranges6)],
  ['a pod', 'the Node has no IPv6 address, but pod default/a has one', world(V4, pod('a', { node: 'n1', ips: ['10.1.1.3', 'fd00:1::3'] }))],
])('a node has addresses of the families of its pods: %s', (_name, reason, snapshot) => {
  const self = ownNode(snapshot, 'n1')
  const text = self && (missingAddress(self) ?? missingFamily(self, snapshot))
  expect(text?.split(': ')[0]).toBe(reason)
})

// SPDX-License-Identifier: Apache-2.0
/** Where the tunnel is asked for in vain. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { describe } from '#lib/preflight/findings.ts'
import { needlessOverlays } from '#operator/preflight/needless-overlays.ts'

function pool(name: string, cidr: string, vxlanMode: string): ApiObject {
  return asApiObject({ apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name }, spec: { cidr, vxlanMode } })
}

const [V4, V6] = [pool('pods', '10.1.0.0/16', 'Always'), pool('pods6', 'fd10::/64', 'Always')]

interface Cluster {
  /** what each tells of its subnets */
  readonly nodes: readonly string[]
  readonly pools: readonly ApiObject[]
}

function told({ nodes, pools }: Cluster): readonly string[] {
  const facts = new Map(nodes.map((text, at) => [`n${at}`, text === '' ? {} : { subnets: text }]))
  return needlessOverlays(facts, pools).map(({ args }) => args.join(' '))
}

test.each<readonly [string, Cluster, readonly string[]]>([
  ['all nodes in one', { nodes: ['192.0.2.0/24', '192.0.2.0/24'], pools: [V4] }, ['pods 192.0.2.0/24']],
  ['one of several', { nodes: ['192.0.2.0/24,198.51.100.0/24', '198.51.100.0/24'], pools: [V4] }, ['pods 198.51.100.0/24']],
  [
    'each family by itself',
    { nodes: ['192.0.2.0/24,fd00::/64', '192.0.2.0/24,fd00::/64'], pools: [V4, V6] },
    ['pods 192.0.2.0/24', 'pods6 fd00::/64'],
  ],
  ['nodes of another family', { nodes: ['fd00::/64', 'fd00::/64'], pools: [V4] }, []],
  ['a router between', { nodes: ['192.0.2.0/24', '198.51.100.0/24'], pools: [V4] }, []],
  ['addresses without a subnet', { nodes: ['192.0.2.1/32', '192.0.2.2/32'], pools: [V4] }, []],
  ['a node that has told none', { nodes: ['192.0.2.0/24', ''], pools: [V4] }, []],
  ['a node that tells nonsense', { nodes: ['192.0.2.0/24', 'x'], pools: [V4] }, []],
  ['a single node', { nodes: ['192.0.2.0/24'], pools: [V4] }, []],
  ['only beyond routers', { nodes: ['192.0.2.0/24', '192.0.2.0/24'], pools: [pool('pods', '10.1.0.0/16', 'CrossSubnet')] }, []],
  ['never', { nodes: ['192.0.2.0/24', '192.0.2.0/24'], pools: [pool('pods', '10.1.0.0/16', 'Never')] }, []],
])('%s', (_, cluster, expected) => {
  expect(told(cluster)).toEqual(expected)
})

test('it says what to do', () => {
  const [found] = needlessOverlays(new Map(['a', 'b'].map((name) => [name, { subnets: '192.0.2.0/24' }])), [V4])
  expect(found === undefined ? '' : describe(found)).toBe(
    'pools send all packets between nodes in the tunnel, and all nodes are in 192.0.2.0/24: pods; ' +
      'set their vxlanMode to CrossSubnet; of pools that the Installation makes encapsulation to VXLANCrossSubnet',
  )
})

// SPDX-License-Identifier: Apache-2.0
/** Nodes of which the cluster and an agent speak. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { isAnnounced, ownNode } from '#lib/model/node.ts'
import { refText } from '#lib/model/ref.ts'
import { Store } from '#lib/store/store.ts'
import type { Sink } from '#lib/store/source.ts'
import { model, node, nodeNetwork, type Manifest } from '../../support/build.ts'

const NODE = node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.1.0/24'], zone: 'east' })
const NETWORK = nodeNetwork('n1', {
  addresses: ['192.168.0.7'],
  podCIDRs: ['10.0.7.0/24'],
  ...{ blocks: ['10.9.0.0/26'], subnets: ['192.168.0.0/24'], labels: { of: 'agent' } },
})

let store: Store
let sink: Sink
beforeEach(() => {
  store = new Store({ sources: ['test'] })
  sink = store.sink('test')
  sink.synced()
})

function put(manifest: Manifest): void {
  sink.apply([{ kind: 'upsert', object: model(manifest) }])
}

function drop(manifest: Manifest): void {
  sink.apply([{ kind: 'delete', ref: model(manifest) }])
}

function known(): unknown {
  const found = store.snapshot.nodes.get('n1')
  if (found === undefined) return undefined
  const { addresses, podCIDRs, blocks = [], subnets, labels, zone } = found
  return [
    addresses.map(formatAddr),
    ...[podCIDRs, blocks, subnets].map((cidrs) => cidrs.map(formatCidr)),
    [...labels].map(([, value]) => value),
    zone,
  ]
}

const BOTH = [['192.168.0.1'], ['10.0.1.0/24'], ['10.9.0.0/26'], ['192.168.0.0/24'], ['east'], 'east']
const BY_AGENT = [['192.168.0.7'], ['10.0.7.0/24'], ['10.9.0.0/26'], ['192.168.0.0/24'], ['agent'], undefined]

test.each([[[NODE, NETWORK]], [[NETWORK, NODE]]])('a Node says what it can, and its NodeNetwork the rest, in any order', (manifests) => {
  for (const manifest of manifests) put(manifest)
  expect(known()).toEqual(BOTH)
  expect(store.takeChanges().map(({ kind, after }) => `${kind} ${after === undefined ? '' : refText(after)}`)).toEqual(['Node Node/n1'])
})

test('what a Node no longer says its NodeNetwork still does, and the other way round', () => {
  put(NODE)
  put(NETWORK)
  drop(NODE)
  expect(known()).toEqual(BY_AGENT)
  expect(ownNode(store.snapshot, 'n1')).toBeUndefined()
  put(NODE)
  expect(known()).toEqual(BOTH)
  expect(ownNode(store.snapshot, 'n1')).toBeDefined()
  drop(NETWORK)
  expect(known()).toEqual([['192.168.0.1'], ['10.0.1.0/24'], [], [], ['east'], 'east'])
  drop(NODE)
  expect(known()).toBeUndefined()
  expect(store.snapshot.nodeNetworks.size).toBe(0)
})

test('an agent that says the same again changes nothing', () => {
  put(NETWORK)
  store.takeChanges()
  const { revision } = store.snapshot
  put(NETWORK)
  expect([store.snapshot.revision, store.takeChanges()]).toEqual([revision, []])
})

test.each([
  ['its address and its range are announced', node('n1', { addresses: ['192.168.0.7'], podCIDRs: ['10.0.7.0/24'] }), true],
  ['another address is announced', node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.7.0/24'] }), false],
  ['another range is announced', node('n1', { addresses: ['192.168.0.7'], podCIDRs: ['10.0.1.0/24'] }), false],
  ['there is no Node', undefined, false],
])('whether the others have heard: %s', (_, object, announced) => {
  if (object !== undefined) put(object)
  expect(isAnnounced(store.snapshot, 'n1')).toBe(false)
  put(NETWORK)
  expect(isAnnounced(store.snapshot, 'n1')).toBe(announced)
})

test('other nodes also hear that a node has no address yet', () => {
  put(node('n1', {}))
  put(nodeNetwork('n1', { addresses: [] }))
  expect(isAnnounced(store.snapshot, 'n1')).toBe(true)
})

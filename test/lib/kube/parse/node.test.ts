// SPDX-License-Identifier: Apache-2.0
/** Nodes and namespaces. Layer: test. */
import { describe, expect, test } from 'vitest'
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import { nodeNetworkRaw } from '#lib/kube/objects/node-network.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { nodeAddress, type NodeNetwork } from '#lib/model/node.ts'
import { model, namespace, node, nodeNetwork } from '../../../support/build.ts'

test('a node is read: of a family with internal addresses these only', () => {
  const read = model({
    ...node('n1', { podCIDRs: ['10.1.0.0/24', 'fd01::/64'], zone: 'east' }),
    status: {
      addresses: [
        { type: 'Hostname', address: 'n1' },
        { type: 'ExternalIP', address: '192.0.2.1' },
        { type: 'InternalIP', address: 'fd00::1' },
        { type: 'InternalIP', address: '192.168.0.1' },
      ],
    },
  })
  expect(read).toEqual({
    kind: 'Node',
    namespace: '',
    name: 'n1',
    addresses: [parseAddr('fd00::1'), parseAddr('192.168.0.1')],
    podCIDRs: [parseCidr('10.1.0.0/24'), parseCidr('fd01::/64')],
    zone: 'east',
    labels: new Map([['topology.kubernetes.io/zone', 'east']]),
    subnets: [],
  })
  if (read.kind === 'Node')
    expect([nodeAddress(read, true), nodeAddress(read, false)]).toEqual([parseAddr('192.168.0.1'), parseAddr('fd00::1')])
})

test.each<[string, { readonly addresses?: string[]; readonly external: string[] }, string[]]>([
  ['one family has no InternalIP', { addresses: ['192.168.0.1'], external: ['192.0.2.1', '2001:db8::1'] }, ['192.168.0.1', '2001:db8::1']],
  ['no family has', { external: ['2001:db8::1', '192.0.2.1', '192.0.2.2'] }, ['2001:db8::1', '192.0.2.1', '192.0.2.2']],
  ['both families have', { addresses: ['fd00::1', '192.168.0.1'], external: ['192.0.2.1'] }, ['fd00::1', '192.168.0.1']],
])('ExternalIPs count for a family without any InternalIP: %s', (_, addresses, expected) => {
  expect(model(node('n1', addresses))).toMatchObject({ addresses: expected.map(parseAddr) })
})

test.each([
  ['being deleted', { metadata: { name: 'n1', deletionTimestamp: '2026-01-01T00:00:00Z' } }, true],
  ['about to be, by its taint', { spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] } }, true],
  ['only tainted', { spec: { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] } }, undefined],
])('a node that is %s', (_, fields, leaving) => {
  const read = model({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, ...fields })
  expect(read.kind === 'Node' && read.leaving).toBe(leaving)
})

test.each([
  ['netplane.io/agent-not-ready', 'NoSchedule', true],
  ['netplane.io/agent-not-ready', 'NoExecute', true],
  ['netplane.io/agent', 'NoSchedule', undefined],
])('a node with taint %s:%s waits for its agent: %s', (key, effect, awaitsAgent) => {
  const read = model({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec: { taints: [{ key, effect }] } })
  expect(read.kind === 'Node' && read.awaitsAgent).toBe(awaitsAgent)
})

test('podCIDR alone will do', () => {
  expect(model({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec: { podCIDR: '10.1.0.0/24' } })).toMatchObject({
    addresses: [],
    podCIDRs: [parseCidr('10.1.0.0/24')],
  })
})

test('a broken address is left out, and a broken range', () => {
  const ref = { kind: 'Node', namespace: '', name: 'n1' } as const
  expect(parseObject(node('n1', { addresses: ['x', '192.168.0.1'] }), ref)).toMatchObject({
    kind: 'ok',
    value: { addresses: [parseAddr('192.168.0.1')] },
    rejected: [{ path: 'status.addresses[1].address', reason: 'must be an IP address' }],
  })
  expect(parseObject({ spec: { podCIDR: '10.1.0.0' } }, ref)).toMatchObject({
    kind: 'ok',
    value: { podCIDRs: [] },
    rejected: [{ path: 'spec.podCIDR' }],
  })
})

test('a namespace is its labels', () => {
  expect(model(namespace('shop', { b: '2', a: '1' }))).toEqual({
    kind: 'Namespace',
    namespace: '',
    name: 'shop',
    labels: new Map([
      ['a', '1'],
      ['b', '2'],
    ]),
  })
  expect(parseObject({ metadata: { labels: { 'x.y/z': 1 } } }, { kind: 'Namespace', namespace: '', name: 'shop' })).toMatchObject({
    rejected: [{ path: "metadata.labels['x.y/z']", reason: 'must be text' }],
  })
})

describe('what an agent says of a node', () => {
  const spec = {
    addresses: ['192.168.0.1'],
    podCIDRs: ['10.1.0.0/24'],
    blocks: ['10.9.0.0/26', '10.9.1.0/26'],
    subnets: ['192.168.0.0/24'],
    labels: { team: 'a' },
    interfaces: [{ name: 'eth0', addresses: ['192.168.0.1'] }],
  }
  const read: NodeNetwork = {
    ...{ kind: 'NodeNetwork', namespace: '', name: 'n1', labels: new Map([['team', 'a']]), owner: undefined },
    addresses: [parseAddr('192.168.0.1')],
    podCIDRs: [parseCidr('10.1.0.0/24')],
    blocks: [parseCidr('10.9.0.0/26'), parseCidr('10.9.1.0/26')],
    subnets: [parseCidr('192.168.0.0/24')],
    interfaces: [{ name: 'eth0', addresses: [parseAddr('192.168.0.1')] }],
  }

  test('is read, with the Node that it was made for, and what other versions say is passed over', () => {
    expect(model(nodeNetwork('n1', { ...spec, later: true }))).toEqual(read)
    const ownerReferences = [
      { kind: 'Pod', uid: 'u0' },
      { kind: 'Node', uid: 'u1' },
    ]
    expect(model({ ...nodeNetwork('n1', spec), metadata: { name: 'n1', ownerReferences } })).toEqual({ ...read, owner: 'u1' })
    const old = model(nodeNetwork('n1', {}))
    expect(old).toMatchObject({ addresses: [], blocks: [], labels: new Map() })
    // of an agent that does not know them, not none
    expect('interfaces' in old).toBe(false)
  })

  test('of addresses that lead nowhere nothing is believed', () => {
    const manifest = nodeNetwork('n1', { addresses: ['127.0.0.1', '192.168.0.1'] })
    expect(parseObject(manifest, { kind: 'NodeNetwork', namespace: '', name: 'n1' })).toMatchObject({
      value: { addresses: [parseAddr('192.168.0.1')] },
      rejected: [{ path: 'spec.addresses[0]', reason: 'must not be a loopback address' }],
    })
  })

  test('is written as it was, blocks in one order', () => {
    expect(nodeNetworkRaw({ ...read, blocks: read.blocks.toReversed() })).toEqual(spec)
  })
})

// SPDX-License-Identifier: Apache-2.0
/** Manifests → nodes and pods of a lab. */
import { expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import { healthPortOf, takeInventory } from '../../../lab/network/inventory.ts'
import { node, pod, TWO_NODES } from '../cluster.ts'

test('an inventory has nodes and pods in order of name, other kinds unseen', () => {
  const inventory = takeInventory([...TWO_NODES.toReversed(), { kind: 'Service', metadata: { name: 'web' } }, 7, null])
  expect(inventory.nodes.map(({ name, addrs }) => `${name} ${addrs.map(formatAddr).join(' ')}`)).toEqual([
    'a 172.31.7.2 fd00:31:7::2',
    'b 172.31.7.3 fd00:31:7::3',
  ])
  expect(inventory.pods.map(({ key, node }) => `${key} on ${node}`)).toEqual(['default/one on a', 'default/two on a', 'shop/three on b'])
  expect(inventory.pods[0]?.ports).toEqual([
    { protocol: 'TCP', port: 8080 },
    { protocol: 'UDP', port: 8080 },
  ])
  expect(inventory.notes).toEqual([])
})

test('an inventory may have only some nodes, with their pods', () => {
  const inventory = takeInventory(TWO_NODES, ['b', 'c'])
  expect(inventory.nodes.map(({ name }) => name)).toEqual(['b'])
  expect(inventory.pods.map(({ key }) => key)).toEqual(['shop/three'])
  expect(inventory.notes).toEqual(['no manifest of node c'])
})

test('notes name what cannot be built', () => {
  const pending = { kind: 'Pod', metadata: { name: 'pending' }, spec: {} }
  const ended = { kind: 'Pod', metadata: { name: 'ended' }, spec: { nodeName: 'a' }, status: { phase: 'Succeeded', podIP: '10.0.0.1' } }
  const waiting = { kind: 'Pod', metadata: { name: 'waiting' }, spec: { nodeName: 'a' } }
  const lost = pod('default/lost', 'nowhere', '10.0.0.9')
  const inventory = takeInventory([node('a', '10.9.9.9'), node('bare'), pending, ended, waiting, lost])
  expect(inventory.pods).toEqual([])
  expect(inventory.notes).toEqual([
    'node bare left out: neither an InternalIP nor an ExternalIP in status.addresses',
    'pod default/pending left out: no spec.nodeName',
    'pod default/waiting left out: no status.podIPs',
    'pod default/lost left out: no manifest of its node nowhere',
  ])
})

test('a pod of the host network has no address of its own', () => {
  const inventory = takeInventory([node('a', '10.9.9.9'), pod('default/host', 'a')])
  expect(inventory.pods).toMatchObject([{ key: 'default/host', addrs: [], hostNetwork: true }])
})

test('an inventory has names and ports from FelixConfiguration default', () => {
  const felix = { kind: 'FelixConfiguration', metadata: { name: 'default' }, spec: { interfacePrefix: 'cali,eni', healthPort: 19099 } }
  expect(takeInventory([felix])).toMatchObject({ interfacePrefix: 'cali', healthPort: 19099 })
  expect(takeInventory([])).toMatchObject({ interfacePrefix: 'npl', healthPort: 9099 })
})

test('a node has the health port of its own configuration, if it has one', () => {
  const felix = (name: string, healthPort: number) => ({ kind: 'FelixConfiguration', metadata: { name }, spec: { healthPort } })
  const objects = [felix('node.a', 19100), felix('default', 19099)]
  expect([healthPortOf(objects, 'a'), healthPortOf(objects, 'b'), healthPortOf([], 'a')]).toEqual([19100, 19099, 9099])
})

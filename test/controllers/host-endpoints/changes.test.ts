// SPDX-License-Identifier: Apache-2.0
/** Automatic host endpoints where the rows of autohep.json say nothing: others' endpoints, older agents, names.
 * Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { endpointName } from '#controllers/host-endpoints/names.ts'
import { World } from './world.ts'

let world: World

beforeEach(() => {
  world = new World()
  world.hostEndpoint = { autoCreate: 'Enabled' }
})

const names = (): readonly string[] => [...world.endpoints.keys()].sort()

test("an endpoint of a name of ours that is another's stays, and is told", () => {
  const metadata = { name: 'n1-auto-hep', labels: { team: 'a' } }
  const other = asApiObject({ apiVersion: 'netplane.io/v3', kind: 'HostEndpoint', metadata, spec: { node: 'n1', interfaceName: 'eth0' } })
  world.endpoints.set('n1-auto-hep', other)
  world.put('n1', {})
  expect(world.sync().taken).toEqual(['n1-auto-hep'])
  expect(world.endpoints.get('n1-auto-hep')).toBe(other)
  // it stays when there are to be none, too
  world.hostEndpoint = {}
  expect(world.sync().taken).toEqual([])
  expect(names()).toEqual(['n1-auto-hep'])
})

test('a node whose agent is older than the profile has none, and one that it has stays as it is', () => {
  world.put('n1', { labels: { a: '1' }, isOld: true })
  world.put('n2', { labels: { a: '1' } })
  expect([...world.sync().waiting]).toEqual(['n1'])
  expect(names()).toEqual(['n2-auto-hep'])
  world.put('n2', { labels: { a: '2' }, isOld: true })
  expect([...world.sync().waiting]).toEqual(['n1', 'n2'])
  expect(world.endpoints.get('n2-auto-hep')?.metadata.labels).toMatchObject({ a: '1' })
  // a node that is gone waits for nothing
  world.remove('n2')
  world.sync()
  expect(names()).toEqual([])
})

test('a NodeNetwork of the Node before, which had the same name, counts as none', () => {
  world.put('n1', {})
  world.say('n1', { interfaces: {} }, 'uid-of-another')
  expect([...world.sync().waiting]).toEqual(['n1'])
})

test('without the labels of nodes there are those of templates', () => {
  world.syncLabels = 'Disabled'
  world.hostEndpoint = {
    autoCreate: 'Enabled',
    templates: [{ generateName: 't', interfacePattern: '.', labels: { t: '1' }, nodeSelector: 'has(a)' }],
  }
  world.put('n1', { labels: { a: '1' }, interfaces: { eth0: ['192.0.2.1'] } })
  world.sync()
  const labels = [...world.endpoints.values()].map(({ metadata }) => metadata.labels)
  const ours = { 'netplane.io/created-by': 'netplane-controllers' }
  expect(labels).toEqual([ours, { t: '1', ...ours }])
})

test('labels of a template go before those of the node, and ours before all', () => {
  const labels = { a: 'template', 'netplane.io/created-by': 'me' }
  world.hostEndpoint = {
    autoCreate: 'Enabled',
    createDefaultHostEndpoint: 'Disabled',
    templates: [{ generateName: 't', interfacePattern: '.', labels }],
  }
  world.put('n1', { labels: { a: 'node', b: 'node' }, interfaces: { eth0: ['192.0.2.1'] } })
  world.sync()
  expect([...world.endpoints.values()][0]?.metadata.labels).toEqual({
    a: 'template',
    b: 'node',
    'netplane.io/created-by': 'netplane-controllers',
  })
})

test('with pattern and ranges an endpoint is of the addresses of both', () => {
  const template = { generateName: 't', interfacePattern: '^eth', interfaceCIDRs: ['192.0.2.0/24'] }
  world.hostEndpoint = { autoCreate: 'Enabled', createDefaultHostEndpoint: 'Disabled', templates: [template] }
  world.put('n1', { interfaces: { eth0: ['192.0.2.1', '203.0.113.1'], eth1: ['203.0.113.2'], wlan0: ['192.0.2.2'] } })
  world.sync()
  expect([...world.endpoints.values()].map(({ spec }) => spec)).toMatchObject([{ interfaceName: 'eth0', expectedIPs: ['192.0.2.1'] }])
})

test('of two that would have one name the first is made, and the second told', () => {
  const template = (generateName: string): object => ({ generateName, interfaceCIDRs: ['192.0.2.0/24'] })
  world.hostEndpoint = { autoCreate: 'Enabled', createDefaultHostEndpoint: 'Disabled', templates: [template('b-c'), template('c')] }
  world.put('a', { interfaces: { eth0: ['192.0.2.1'] } })
  world.put('a-b', { interfaces: { eth0: ['192.0.2.2'] } })
  expect(world.sync().doubled).toEqual(['a-b-c-auto-hep'])
  expect(world.endpoints.get('a-b-c-auto-hep')?.['spec']).toMatchObject({ node: 'a' })
})

test('what is no name of an object is hashed: interfaces may be called anything', () => {
  expect(endpointName('n1', 't', 'eth0.100')).toBe('n1-t-eth0.100-auto-hep')
  for (const name of ['Eth0', 'eth_0', 'eth0:1', 'a..b']) expect(endpointName('n1', 't', name)).toMatch(/^[a-z0-9]+-auto-hep$/)
})

test('annotations and finalizers of others stay', () => {
  world.put('n1', {})
  world.sync()
  const [made] = world.endpoints.values()
  if (made === undefined) throw new Error('none')
  const more = { annotations: { note: 'x' }, finalizers: ['a/b'], resourceVersion: '7' }
  world.endpoints.set('n1-auto-hep', { ...made, metadata: { ...made.metadata, ...more } })
  world.put('n1', { labels: { a: '1' } })
  world.sync()
  expect(world.endpoints.get('n1-auto-hep')?.metadata).toMatchObject({ ...more, labels: { a: '1' } })
})

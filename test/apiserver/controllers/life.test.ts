// SPDX-License-Identifier: Apache-2.0
/** The controllers before a real API server: what they make, keep, leave and say. Layer: test. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { parseCidr } from '#lib/base/ip.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import { blockName, IP_BLOCK, ipBlockObject } from '#lib/kube/objects/ip-block.ts'
import { NODE } from '#lib/render/input.ts'
import { listAt, textAt } from '../../../lab/raw.ts'
import { found } from '../objects.ts'
import {
  addNode,
  CONFIGURATION,
  configure,
  Controllers,
  ControllersCluster,
  endpointNames,
  hostEndpoint,
  INFORMATION,
  removeNode,
  soon,
  SYSTEM,
  V3,
} from './controllers.ts'

const BUILD_MS = 30 * 60_000

let at: ControllersCluster
let program: Controllers

beforeAll(async () => {
  at = await ControllersCluster.start()
  program = new Controllers(at)
  await soon('a configuration', async () => (await condition('Synced'))?.status === 'True')
}, BUILD_MS)

afterAll(async () => {
  await program[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})

beforeEach(async () => {
  const { admin } = at
  await configure(admin, { hostEndpoint: null, leakGracePeriod: null, reconcilerPeriod: null, syncLabels: null })
  for (const name of ['n1', 'n2']) await removeNode(admin, name)
  for (const name of await endpointNames(admin)) await admin.delete({ apiVersion: V3, kind: 'HostEndpoint', name }).catch(() => undefined)
  await soon('nothing is left', async () => (await endpointNames(admin)).length === 0)
})

async function condition(type: string): Promise<{ status: string; reason: string; message: string } | undefined> {
  const one = listAt(await found(at.admin, CONFIGURATION), 'status.conditions').find((each) => textAt(each, 'type') === type)
  const text = (field: string): string => textAt(one, field) ?? ''
  return one === undefined ? undefined : { status: text('status'), reason: text('reason'), message: text('message') }
}

const endpoint = (name: string): Promise<ApiObject | undefined> => found(at.admin, { apiVersion: V3, kind: 'HostEndpoint', name })
const AUTO = { hostEndpoint: { autoCreate: 'Enabled' } }

test('host endpoints come with nodes, follow them and go with them', async () => {
  const { admin } = at
  await configure(admin, AUTO)
  await admin.create(hostEndpoint('mine', 'n1', { env: 'staging' }))
  await addNode(admin, 'n1', { zone: 'a' })
  await soon('an endpoint', async () => (await endpoint('n1-auto-hep')) !== undefined)
  expect(await endpoint('n1-auto-hep')).toMatchObject({
    metadata: { labels: { zone: 'a', 'netplane.io/created-by': 'netplane-controllers' } },
    spec: { node: 'n1', interfaceName: '*', expectedIPs: ['192.0.2.1', '2001:db8::1'], profiles: ['netplane-default-allow'] },
  })
  await admin.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, { metadata: { labels: { zone: 'b' } } }, { type: 'merge' })
  await soon('the new label', async () => (await endpoint('n1-auto-hep'))?.metadata.labels?.['zone'] === 'b')
  // another's edit is taken back, and so is a deletion
  const named: Named = { apiVersion: V3, kind: 'HostEndpoint', name: 'n1-auto-hep' }
  await admin.patch(named, { spec: { interfaceName: 'eth9' } }, { type: 'merge' })
  await soon('as it was', async () => textAt(await endpoint('n1-auto-hep'), 'spec.interfaceName') === '*')
  await admin.delete(named)
  await soon('made again', async () => (await endpoint('n1-auto-hep')) !== undefined)
  await removeNode(admin, 'n1')
  await soon('gone', async () => (await endpoint('n1-auto-hep')) === undefined, 2000)
  expect(await endpointNames(admin)).toEqual(['mine'])
})

test('a spec that is refused is told by its fields, and what counted before goes on: also after a restart', async () => {
  const { admin } = at
  await configure(admin, AUTO)
  await addNode(admin, 'n1')
  await soon('an endpoint', async () => (await endpoint('n1-auto-hep')) !== undefined)
  await configure(admin, { hostEndpoint: { autoCreate: 'Disabled' } }, { prometheusMetricsPort: 9094 })
  await soon('refused', async () => (await condition('Accepted'))?.status === 'False')
  expect((await condition('Accepted'))?.message).toContain('spec.prometheusMetricsPort: must be 0')
  expect(textAt(await found(admin, CONFIGURATION), 'status.runningConfig.controllers.node.hostEndpoint.autoCreate')).toBe('Enabled')
  await program[Symbol.asyncDispose]()
  program = new Controllers(at, 'again')
  await addNode(admin, 'n2')
  await soon('an endpoint of the new node', async () => (await endpoint('n2-auto-hep')) !== undefined)
  expect(await endpoint('n1-auto-hep')).toBeDefined()
  await configure(admin, {}, { prometheusMetricsPort: null })
  await soon('all gone', async () => (await endpointNames(admin)).length === 0)
})

test("a name that another's endpoint has is told, once, and the endpoint stays", async () => {
  const { admin } = at
  const other = await admin.create(hostEndpoint('n1-auto-hep', 'n2'))
  await configure(admin, AUTO)
  await addNode(admin, 'n1')
  await soon('told', async () => (await condition('Synced'))?.reason === 'NamesTaken')
  expect((await endpoint('n1-auto-hep'))?.metadata.resourceVersion).toBe(other.metadata.resourceVersion)
  const events = async (): Promise<readonly ApiObject[]> =>
    (await admin.list({ apiVersion: 'v1', kind: 'Event' })).filter((one) => textAt(one, 'reason') === 'NamesTaken')
  // it is written after the status
  await soon('an event', async () => (await events()).length > 0)
  await admin.delete(namedOf(other))
  await soon('made', async () => (await endpoint('n1-auto-hep'))?.metadata.labels?.['netplane.io/created-by'] === 'netplane-controllers')
  expect(await events()).toMatchObject([
    { involvedObject: { kind: 'ControllersConfiguration', name: 'default' }, source: { component: 'netplane-controllers' } },
  ])
})

test('a node whose agent says no interfaces waits, and is named', async () => {
  const { admin } = at
  await configure(admin, AUTO)
  await addNode(admin, 'n1')
  await admin.patch({ apiVersion: V3, kind: 'NodeNetwork', name: 'n1' }, { spec: { interfaces: null } }, { type: 'merge' })
  await soon('told', async () => (await condition('Synced'))?.reason === 'AgentsUnready')
  expect((await condition('Synced'))?.message).toContain('n1')
})

test('of several processes one acts, and another takes over when it is killed', async () => {
  const { admin } = at
  await configure(admin, AUTO)
  {
    await using second = new Controllers(at, 'second')
    await soon('the second watches', () => Promise.resolve(second.log.includes('controllers.started')))
    await addNode(admin, 'n1')
    await soon('an endpoint', async () => (await endpoint('n1-auto-hep')) !== undefined)
    expect(second.log).not.toContain('host-endpoint.created')
    await program.kill()
    await addNode(admin, 'n2')
    await soon('one of the second', async () => (await endpoint('n2-auto-hep')) !== undefined, 40_000)
    // it is told once the API server has answered
    await soon('the second tells of it', () => Promise.resolve(second.log.includes('"name":"n2-auto-hep"')))
  }
  program = new Controllers(at, 'third')
}, 60_000)

test('while the datastore is locked nothing is written', async () => {
  const { admin } = at
  await configure(admin, AUTO)
  await admin.patch(INFORMATION, { spec: { datastoreReady: false } }, { type: 'merge' })
  await addNode(admin, 'n1')
  await new Promise((resolve) => setTimeout(resolve, 2000))
  expect(await endpointNames(admin)).toEqual([])
  await admin.patch(INFORMATION, { spec: { datastoreReady: true } }, { type: 'merge' })
  await soon('an endpoint', async () => (await endpoint('n1-auto-hep')) !== undefined)
})

test('blocks of a node that is gone are taken back after the grace, but not while a pod has an address of them', async () => {
  const { admin } = at
  await configure(admin, { leakGracePeriod: '1s', reconcilerPeriod: '1s' })
  await addNode(admin, 'n1')
  const blocks = ['10.0.0.0/26', '10.0.1.0/26', '10.0.2.0/26'].map(parseCidr)
  const [used, free, own] = blocks.map((cidr) => ({ ...IP_BLOCK, name: blockName(cidr) }))
  if (used === undefined || free === undefined || own === undefined) throw new Error('three')
  for (const [index, cidr] of blocks.entries())
    await admin.create(asApiObject(ipBlockObject(emptyBlock(cidr, index === 2 ? 'n1' : 'gone'))))
  const containers = [{ name: 'c', image: 'i' }]
  const pod = await admin.create(
    asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: SYSTEM, name: 'p' }, spec: { nodeName: 'n1', containers } }),
  )
  const status = { phase: 'Running', podIP: '10.0.0.7', podIPs: [{ ip: '10.0.0.7' }] }
  await admin.patch(namedOf(pod), { status }, { type: 'merge', subresource: 'status' })
  await soon('the free one goes', async () => (await found(admin, free)) === undefined)
  expect(await found(admin, used)).toBeDefined()
  expect(await found(admin, own)).toBeDefined()
  await admin.delete(namedOf(pod), { gracePeriodSeconds: 0 })
  await soon('the used one goes', async () => (await found(admin, used)) === undefined)
  expect(await found(admin, own)).toBeDefined()
})

test('the version of the cluster is that of the controllers once every node runs it', async () => {
  const { admin } = at
  const selector = { matchLabels: { app: 'x' } }
  const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const spec = { selector, template }
  const agents = await admin.create(
    asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { namespace: SYSTEM, name: NODE }, spec }),
  )
  const counted = async (updated: number): Promise<void> => {
    const status = { observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberMisscheduled: 0, numberReady: 2 }
    await admin.patch(namedOf(agents), { status: { ...status, updatedNumberScheduled: updated } }, { type: 'merge', subresource: 'status' })
  }
  const says = async (): Promise<string | undefined> => textAt(await found(admin, INFORMATION), 'spec.netplaneVersion')
  await counted(1)
  await admin.patch(INFORMATION, { spec: { netplaneVersion: 'v3.31.1' } }, { type: 'merge' })
  await soon('the numbers', async () => textAt(await found(admin, INFORMATION), 'spec.netplaneVersion') === 'v3.31.1')
  await counted(2)
  // another's edit has it looked at again
  await admin.patch(INFORMATION, { spec: { clusterType: 'k8s,other' } }, { type: 'merge' })
  await soon('the version', async () => (await says()) === `v${packageVersion()}`)
  expect(await found(admin, INFORMATION)).toMatchObject({
    spec: { clusterType: 'k8s,other', dataplane: { nodes: 2, ready: 2, updated: 2 } },
  })
})

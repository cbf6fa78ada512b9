// SPDX-License-Identifier: Apache-2.0
/** The storage of an older installation becomes that of this version, in a real API server with its garbage collector:
 * whole, cut off at any point, back, and once more. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getOrNone, listOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { deadOwners } from '#upgrade/owners/move.ts'
import { back } from '#upgrade/storage/back.ts'
import { finishStep } from '#upgrade/storage/finish.ts'
import { readHeld } from '#upgrade/storage/import-state.ts'
import type { StorageOptions } from '#upgrade/storage/options.ts'
import { storageSteps } from '#upgrade/storage/steps.ts'
import { verdictReport } from '#upgrade/storage/verdicts.ts'
import { readInstallation } from '#upgrade/stored/installation.ts'
import { otherUid } from '#upgrade/stored/uid.ts'
import type { Step } from '#upgrade/steps/step.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { fixture } from '../../upgrade/stored/installation.ts'
import { labelled, plantStored } from './plant.ts'
import { runSteps, watched } from './run-steps.ts'

const BUILD_MS = 30 * 60_000
const WHOLE = { timeout: 240_000 }
const SOON = { timeoutMs: 60_000, everyMs: 200 }
const V3 = 'netplane.io/v3'
const V1 = 'crd.netplane.io/v1'
const FIXTURE = fixture('3.30-netplane')
/** An administrator has deleted what is refused. */
const INPUT = {
  ...FIXTURE,
  pods: FIXTURE.pods.map((pod) => labelled(asApiObject(pod))),
  objects: FIXTURE.objects.filter((object) => !isObject(object) || object['kind'] !== 'BGPFilter'),
}
const NOW = new AbortController().signal
const STEPS = ['owners-kept', 'lock', 'api-service', 'definitions', 'import', 'networks', 'verdicts', 'unlock', 'admission', 'owners-back']

const API_SERVICE: ApiObject = asApiObject({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: 'v3.netplane.io' },
  spec: {
    ...{ group: 'netplane.io', version: 'v3', groupPriorityMinimum: 1500, versionPriority: 200, insecureSkipTLSVerify: true },
    service: { namespace: 'default', name: 'netplane-api' },
  },
})
const MENU: Named = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'menu' }
const WEB: Named = { apiVersion: V3, kind: 'NetworkPolicy', namespace: 'shop', name: 'web' }
const STORED_INFORMATION: Named = { apiVersion: V1, kind: 'ClusterInformation', name: 'default' }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
/** that the collector must leave */
let menuOwner = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-import-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster'), controllers: true })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  const stored = await plantStored(client, INPUT)
  await client.create(API_SERVICE)
  const partners = stored.find(({ metadata }) => metadata.name === 'partners')
  menuOwner = otherUid(partners?.metadata.uid ?? '') ?? ''
  const ownerReferences = [{ apiVersion: V3, kind: 'NetworkSet', name: 'partners', uid: menuOwner }]
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'shop', name: 'menu', ownerReferences } }))
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const optionsOf = (onWrite: () => void = () => undefined): StorageOptions => ({
  client: watched(client, onWrite),
  clock: systemClock,
  namespace: 'kube-system',
  environment: INPUT.environment,
  version: '3.31.5',
  drainMs: 1000,
})

function stepsOf(options: StorageOptions, before = 'after all'): readonly Step[] {
  const all = storageSteps(options, readInstallation(INPUT))
  const at = all.findIndex(({ name }) => name === before)
  return at < 0 ? all : all.slice(0, at)
}

/** What they say, without what the server gives. */
async function imported(): Promise<readonly unknown[]> {
  const held = await readHeld(optionsOf(), NOW)
  return held.map(({ kind, metadata: { namespace, name, labels, annotations }, spec }) => ({
    kind,
    namespace,
    name,
    labels,
    annotations,
    spec,
  }))
}

const writtenOf = (objects: readonly unknown[]): readonly unknown[] =>
  // addresses rest since the lock
  objects.map((object) =>
    isObject(object) && object['kind'] === 'IPAMBlock' ? { ...object, spec: { ...fieldsOf(object['spec']), released: [] } } : object,
  )

let first: readonly unknown[] = []

test('a run that is cut off again and again comes to its end', WHOLE, async () => {
  let runs = 0
  for (let isOver = false; !isOver; runs++) {
    const controller = new AbortController()
    let writes = 0
    // at the first write, at the second one …
    const cut = (): void => {
      if (++writes > runs % 3) controller.abort(new Error('cut off'))
    }
    isOver = await runSteps(stepsOf(optionsOf(cut), 'unlock'), controller.signal).then(
      () => true,
      (thrown: unknown) => {
        if (!controller.signal.aborted) throw thrown
        return false
      },
    )
    expect(runs).toBeLessThan(60)
  }
  expect(runs).toBeGreaterThan(10)
  first = await imported()
  expect(first.length).toBeGreaterThan(12)
  expect((await client.get(STORED_INFORMATION))['spec']).toMatchObject({ datastoreReady: false })
  expect((await client.get({ apiVersion: V3, kind: 'ClusterInformation', name: 'default' }))['spec']).toMatchObject({
    datastoreReady: false,
  })
})

test('owners have their UIDs of today, and no object was collected meanwhile', async () => {
  const office = await client.get({ apiVersion: V3, kind: 'GlobalNetworkSet', name: 'office' })
  const partners = await client.get({ apiVersion: V3, kind: 'NetworkSet', namespace: 'shop', name: 'partners' })
  expect(partners.metadata['ownerReferences']).toMatchObject([{ apiVersion: V3, kind: 'GlobalNetworkSet', uid: office.metadata.uid }])
  expect((await client.get(MENU)).metadata['ownerReferences']).toBeUndefined()
})

test('an object that is changed behind the import is seen in the verdicts, and written again', WHOLE, async () => {
  await client.patch(WEB, { spec: { ingress: [{ action: 'Deny' }] } }, { type: 'merge' })
  const { differences } = await verdictReport(optionsOf(), NOW)
  expect(differences).toEqual(
    expect.arrayContaining([expect.stringMatching(/ingress of shop\/web: .* by NetworkPolicy\/shop\/web rule 0/)]),
  )
  await runSteps(stepsOf(optionsOf(), 'unlock'))
  expect(await imported()).toEqual(first)
  await client.delete({ apiVersion: V3, kind: 'IPAMBlock', name: '10-244-0-0-26' })
  const without = await verdictReport(optionsOf(), NOW)
  expect(without.differences).toEqual([expect.stringContaining('10.244.0.5 of pod shop/web is in no block')])
})

test('a foreign object is in the way', WHOLE, async () => {
  const other: Named = { apiVersion: V3, kind: 'GlobalNetworkPolicy', name: 'other' }
  await client.create(asApiObject({ apiVersion: V3, kind: 'GlobalNetworkPolicy', metadata: { name: 'other' }, spec: {} }))
  await expect(runSteps(stepsOf(optionsOf(), 'unlock'))).rejects.toThrow('GlobalNetworkPolicy other is there already')
  await client.delete(other)
})

test('one refused object keeps all others from being written', WHOLE, async () => {
  const peer: Named = { apiVersion: V1, kind: 'BGPPeer', name: 'rack' }
  await client.create(asApiObject({ apiVersion: V1, kind: 'BGPPeer', metadata: { name: 'rack' }, spec: {} }))
  await client.delete(WEB)
  await expect(runSteps(stepsOf(optionsOf(), 'unlock'))).rejects.toThrow('import: BGPPeer rack: BGP is not supported')
  expect(await getOrNone(client, WEB)).toBeUndefined()
  await client.delete(peer)
})

test('until unlock there is a way back', WHOLE, async () => {
  // no server of the old API is there: it cannot say who owns what
  expect((await back(optionsOf(), NOW, () => undefined)).length).toBeGreaterThan(0)
  expect((await client.get(namedOf(API_SERVICE)))['spec']).toMatchObject(fieldsOf(API_SERVICE['spec']))
  const information = await client.get(STORED_INFORMATION)
  expect(information['spec']).toMatchObject({ datastoreReady: true })
  expect(information.metadata.annotations).not.toHaveProperty('upgrade.netplane.io/locked-at')
  const definitions = await client.list({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' })
  expect(definitions.filter(({ spec }) => fieldsOf(spec)['group'] === 'netplane.io')).toEqual([])
  await expect(back(optionsOf(), NOW, () => undefined)).rejects.toThrow('no upgrade is under way')
})

test('a whole run comes to the same, and finds each owner', WHOLE, async () => {
  const { ran, told } = await runSteps(stepsOf(optionsOf()))
  // owners are still kept aside
  expect(ran).toEqual(STEPS.filter((name) => name !== 'owners-kept' && name !== 'verdicts'))
  expect(told).toEqual(expect.arrayContaining(['NetworkPolicy: 1 here, as they are stored', 'put the owners of ConfigMap shop/menu back']))
  const ready = first.map((object) => {
    if (!isObject(object) || object['kind'] !== 'ClusterInformation') return object
    return { ...object, spec: { ...fieldsOf(object['spec']), datastoreReady: true } }
  })
  expect(writtenOf(await imported())).toEqual(writtenOf(ready))
  const partners = await client.get({ apiVersion: V3, kind: 'NetworkSet', namespace: 'shop', name: 'partners' })
  expect((await client.get(MENU)).metadata['ownerReferences']).toMatchObject([{ apiVersion: V3, uid: partners.metadata.uid }])
  expect(partners.metadata.uid).not.toBe(menuOwner)
  expect(await deadOwners(client)).toEqual([])
  expect((await client.get(STORED_INFORMATION))['spec']).toMatchObject({ datastoreReady: false })
})

test('each node has its blocks said, until its own agent says them', async () => {
  const said = await client.list({ ...NODE_NETWORK })
  const blocksOf = ({ metadata: { name }, spec }: ApiObject): unknown => [name, fieldsOf(spec)['blocks']]
  expect(said.map(blocksOf).toSorted()).toEqual([
    ['a', ['10.244.0.0/26']],
    ['b', ['10.244.0.64/26']],
  ])
  const node = await client.get({ apiVersion: 'v1', kind: 'Node', name: 'a' })
  expect(said[0]?.metadata['ownerReferences']).toMatchObject([{ kind: 'Node', name: 'a', uid: node.metadata.uid }])
})

test('a second run finds all done, and writes nothing', WHOLE, async () => {
  let writes = 0
  const options = optionsOf(() => writes++)
  // agents of this version have changed what was imported
  await client.patch(WEB, { spec: { order: 11 } }, { type: 'merge' })
  expect((await runSteps(stepsOf(options))).ran).toEqual([])
  for (const { run } of stepsOf(options, 'unlock').filter(({ name }) => name === 'import')) await run(NOW, () => undefined)
  expect(writes).toBe(0)
  expect((await client.get(WEB))['spec']).toMatchObject({ order: 11 })
})

test('there is no way back any more', async () => {
  await expect(back(optionsOf(), NOW, () => undefined)).rejects.toThrow('the imported objects are unlocked')
})

test('what is stored can be neither made, changed nor deleted, and the server says what to use', async () => {
  const sentence = 'write netplane.io/v3 with netplanectl v3.31.5 or with kubectl'
  const stored: Named = { apiVersion: V1, kind: 'GlobalNetworkSet', name: 'office' }
  await expect(client.create(asApiObject({ apiVersion: V1, kind: 'GlobalNetworkSet', metadata: { name: 'more' } }))).rejects.toThrow(
    sentence,
  )
  await expect(client.patch(stored, { spec: { nets: [] } }, { type: 'merge' })).rejects.toThrow(sentence)
  await expect(client.delete(stored)).rejects.toThrow(sentence)
})

test('a namespace can be deleted all the same', WHOLE, async () => {
  const namespace: Named = { apiVersion: 'v1', kind: 'Namespace', name: 'shop' }
  await client.delete(namespace)
  for (const pod of await client.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'shop' }))
    await client.delete(namedOf(pod), { gracePeriodSeconds: 0 })
  const left = async (): Promise<true | undefined> => ((await getOrNone(client, namespace)) === undefined ? true : undefined)
  if ((await waitFor(left, SOON)) === undefined) expect(await client.get(namespace)).toBeUndefined()
})

test('finish takes what is stored, finalizers or not, once every node runs this version', WHOLE, async () => {
  const step = finishStep(optionsOf())
  expect(await step.look(NOW)).toEqual({ isDone: false, problems: ['DaemonSet kube-system/netplane-node is not there'] })
  await makeAgents('v3.31.4')
  await expect(step.look(NOW)).resolves.toMatchObject({
    problems: ['DaemonSet kube-system/netplane-node has the image netplane/netplane:v3.31.4, which is not v3.31.5'],
  })
  await makeAgents('v3.31.5')
  const stays = { kind: 'GlobalNetworkSet', metadata: { name: 'held', finalizers: ['example.com/held'] }, spec: {} }
  await withoutPolicy(() => client.create(asApiObject({ apiVersion: V1, ...stays })))
  expect((await runSteps([step])).ran).toEqual(['finish'])
  expect(await listOrNone(client, { apiVersion: V1, kind: 'GlobalNetworkSet' })).toEqual([])
  expect((await runSteps([...stepsOf(optionsOf()), step])).ran).toEqual([])
  expect(await client.get({ apiVersion: V3, kind: 'GlobalNetworkSet', name: 'office' })).toBeDefined()
})

/** They run on no node. */
async function makeAgents(version: string): Promise<void> {
  const labels = { app: 'netplane-node' }
  const containers = [{ name: 'netplane-node', image: `netplane/netplane:${version}` }]
  const template = { metadata: { labels }, spec: { containers, nodeSelector: { none: 'none' } } }
  const made = await client.apply(
    asApiObject({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { namespace: 'kube-system', name: 'netplane-node' },
      spec: { selector: { matchLabels: labels }, template },
    }),
  )
  const counted = async (): Promise<true | undefined> => {
    const { status } = await client.get(namedOf(made))
    return fieldsOf(status)['observedGeneration'] === made.metadata.generation ? true : undefined
  }
  expect(await waitFor(counted, SOON)).toBe(true)
}

async function withoutPolicy(write: () => Promise<unknown>): Promise<void> {
  const binding: Named = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    name: 'netplane-upgrade-stored',
  }
  const before = await client.get(binding)
  await client.delete(binding)
  expect(await waitFor(() => write().catch(() => undefined), SOON)).toBeDefined()
  await client.create(asApiObject({ ...before, metadata: { name: before.metadata.name } }))
}

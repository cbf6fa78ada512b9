// SPDX-License-Identifier: Apache-2.0
/** Owner references across an upgrade, with the real garbage collector: what it takes without the procedure, and that
 * it takes nothing with it. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { deadOwners, keepOwners, restoreOwners } from '#upgrade/owners/move.ts'
import { KEPT } from '#upgrade/owners/references.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { define, put } from '../definitions.ts'

const BUILD_MS = 30 * 60_000
/** The collector learns of new kinds every half minute. */
const COLLECTED = { timeoutMs: 120_000, everyMs: 200 }
const V3 = 'netplane.io/v3'
/** as the old API showed it: no object of the server has it */
const OLD_UID = '8abfb334-d7d0-4013-8332-91610bbd2b04'
const UNSERVED = { apiVersion: 'metrics.example.com/v1', kind: 'Gauge' }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-owners-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster'), controllers: true })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const configMap = (name: string): Named => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name })

async function make(name: string, owners: readonly object[] = []): Promise<ApiObject> {
  const { apiVersion, kind, ...metadata } = configMap(name)
  return await client.create(asApiObject({ apiVersion, kind, metadata: { ...metadata, ownerReferences: owners } }))
}

function ownedBy(kind: string, name: string, uid = OLD_UID): object {
  return { apiVersion: V3, kind, name, uid, controller: true }
}

const ownersOf = async (name: string): Promise<unknown> => (await client.get(configMap(name))).metadata['ownerReferences']
const isThere = async (name: string): Promise<boolean> => (await getOrNone(client, configMap(name))) !== undefined

async function isCollected(name: string): Promise<boolean> {
  return (await waitFor(async () => ((await isThere(name)) ? undefined : true), COLLECTED)) === true
}

const sameName = ({ kind, name }: { readonly kind: string; readonly name: string }, namespace: string | undefined): Named => ({
  ...{ apiVersion: V3, kind, name },
  ...(kind === 'NetworkSet' ? { namespace } : {}),
})

test('a config map whose owner gets another UID is collected without the procedure', async () => {
  await make('menu', [ownedBy('NetworkSet', 'suppliers')])
  await define(client, 'NetworkSet')
  await put(client, { apiVersion: V3, kind: 'NetworkSet', metadata: { namespace: 'default', name: 'suppliers' }, spec: {} })
  expect(await isCollected('menu')).toBe(true)
})

test('with it every object stays, and has its owner again', async () => {
  const chef = await make('chef')
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'chef', uid: chef.metadata.uid }
  await make('rota', [ownedBy('GlobalNetworkSet', 'offices'), other])
  expect(await keepOwners(client)).toEqual({ changed: ['ConfigMap default/rota'], problems: [] })
  expect(await ownersOf('rota')).toEqual([other])
  expect(await keepOwners(client)).toEqual({ changed: [], problems: [] })
  expect(await deadOwners(client)).toEqual(['ConfigMap default/rota: its owners are kept aside'])

  await define(client, 'GlobalNetworkSet')
  expect(await restoreOwners(client, sameName)).toEqual({
    changed: [],
    problems: ['ConfigMap default/rota: its owner GlobalNetworkSet offices is not there'],
  })
  await put(client, { apiVersion: V3, kind: 'GlobalNetworkSet', metadata: { name: 'offices' }, spec: {} })
  const { uid } = (await client.get({ apiVersion: V3, kind: 'GlobalNetworkSet', name: 'offices' })).metadata
  // an object with the old UID is collected by now
  await make('dead', [ownedBy('GlobalNetworkSet', 'offices')])
  expect(await isCollected('dead')).toBe(true)

  expect(await restoreOwners(client, sameName)).toEqual({ changed: ['ConfigMap default/rota'], problems: [] })
  expect(await restoreOwners(client, sameName)).toEqual({ changed: [], problems: [] })
  expect(await ownersOf('rota')).toEqual([other, ownedBy('GlobalNetworkSet', 'offices', uid)])
  expect((await client.get(configMap('rota'))).metadata.annotations?.[KEPT]).toBeUndefined()
  expect(await deadOwners(client)).toEqual([])
})

test('an owner of today is one: what it owns goes with it', async () => {
  const rota = await client.get(configMap('rota'))
  await client.patch(configMap('rota'), { metadata: { ownerReferences: rota.metadata['ownerReferences'] } }, { type: 'merge' })
  await client.delete(configMap('chef'))
  await client.delete({ apiVersion: V3, kind: 'GlobalNetworkSet', name: 'offices' })
  expect(await isCollected('rota')).toBe(true)
})

test('a group whose server is silent is named, as owners of its objects are not seen', async () => {
  const service = { namespace: 'default', name: 'metrics' }
  const spec = { group: 'metrics.example.com', version: 'v1', groupPriorityMinimum: 100, versionPriority: 100, service }
  await put(client, {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `v1.${spec.group}` },
    spec: { ...spec, insecureSkipTLSVerify: true },
  })
  const silent = await waitFor(async () => (await deadOwners(client)).find((text) => text.includes(UNSERVED.apiVersion)), COLLECTED)
  expect(silent).toBe('metrics.example.com/v1: its server does not answer, so owners of its objects are not seen')
})

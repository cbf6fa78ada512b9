// SPDX-License-Identifier: Apache-2.0
/** What an operator with the rights of deploy/ takes from others: a lock of the datastore, pull secrets.
 * Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { fieldsOf, isObject, textOf } from '#lib/base/object.ts'
import { CLUSTER_INFORMATION, clusterInformationObject } from '#lib/kube/objects/cluster-information.ts'
import { ENDPOINT_MAP } from '#lib/render/input.ts'
import { tokenFor } from '../accounts.ts'
import { put } from '../definitions.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { AGENTS, BUILD_MS, INSTALLATION, OPERATOR, OperatorCluster } from './operator-cluster.ts'

const SOON = { interval: 50 }

let on: OperatorCluster
let client: ApiClient

beforeAll(async () => {
  on = await OperatorCluster.start()
  client = on.client
  for (const object of page('operator-crds.yaml')) await put(client, object)
  for (const object of page('netplane-operator.yaml')) if (object.kind !== 'Deployment') await put(client, object)
  const data = { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' }
  await put(client, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: OPERATOR, name: ENDPOINT_MAP }, data })
  const account = await client.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace: OPERATOR, name: OPERATOR })
  on.startOperator(on.cluster.kubeconfig({ token: tokenFor(account, join(on.folder, 'accounts.key'), 3600) }))
}, BUILD_MS)

afterAll(async () => {
  await on[Symbol.asyncDispose]()
})

/** Objects of a file of deploy/operator. */
function page(name: string): readonly ApiObject[] {
  return loadAll(readFileSync(fileURLToPath(new URL(`../../../deploy/operator/${name}`, import.meta.url)), 'utf8')).map(asApiObject)
}

const found = (named: Named): Promise<ApiObject | undefined> => on.found(named)

/** Of the component `network`: by type, "status reason message". */
async function conditions(): Promise<Readonly<Record<string, string>>> {
  const all = await on.conditions('network')
  return Object.fromEntries(all.map(({ type, status, reason, message }) => [textOf(type), [status, reason, message].map(textOf).join(' ')]))
}

test('while the datastore is locked no pool is made and the status says why; then both follow', async () => {
  await put(client, clusterInformationObject({ clusterGUID: 'g', clusterType: 'k8s', netplaneVersion: 'v3.31.5', datastoreReady: false }))
  const spec = { netplaneNetwork: { linuxDataplane: 'BPF', ipPools: [{ cidr: '10.28.0.0/16' }] } }
  await put(client, { ...INSTALLATION, metadata: { name: 'default' }, spec })
  await expect.poll(() => found(AGENTS), SOON).toBeDefined()
  const locked = 'the datastore is locked: ClusterInformation default has datastoreReady: false'
  const degraded = async (): Promise<string | undefined> => (await conditions())['Degraded']
  await expect.poll(degraded, SOON).toBe(`True DatastoreLocked IPPool ipv4-10-28-0-0-16: ${locked}`)
  // as its controller counts pods at 1/2
  const counts = { desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberMisscheduled: 0, numberReady: 0 }
  const generation = (await client.get(AGENTS)).metadata.generation
  await client.patch(AGENTS, { status: { ...counts, observedGeneration: generation } }, { type: 'merge', subresource: 'status' })
  const waits = `False DatastoreLocked ${locked}; 2 of 2 pods are of the newest version, 0 are ready`
  await expect.poll(async () => (await conditions())['Available'], SOON).toBe(waits)
  expect(await client.list({ apiVersion: 'netplane.io/v3', kind: 'IPPool' })).toEqual([])
  await client.patch(CLUSTER_INFORMATION, { spec: { datastoreReady: true } }, { type: 'merge' })
  await expect.poll(async () => (await client.list({ apiVersion: 'netplane.io/v3', kind: 'IPPool' })).length, SOON).toBe(1)
  await expect.poll(async () => (await conditions())['Available'], SOON).toContain('False RollingOut')
  await expect.poll(degraded, SOON).toContain('False AllReady')
})

test('pull secrets are copied to where pods find them, changed with their source, and taken away with their name', async () => {
  const named = (namespace: string, name: string): Named => ({ apiVersion: 'v1', kind: 'Secret', namespace, name })
  const content = (text: string): string => Buffer.from(JSON.stringify({ auths: { [text]: {} } })).toString('base64')
  const type = 'kubernetes.io/dockerconfigjson'
  const write = (text: string): Promise<unknown> =>
    client.apply(
      asApiObject({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: OPERATOR, name: 'pull' }, type, data: dataOf(text) }),
    )
  const dataOf = (text: string): object => ({ '.dockerconfigjson': content(text) })
  const copied = async (): Promise<unknown> => (await found(named('netplane-system', 'pull')))?.['data']
  const name = async (...names: readonly string[]): Promise<unknown> =>
    client.patch(INSTALLATION, { spec: { imagePullSecrets: names.map((one) => ({ name: one })) } }, { type: 'merge' })
  const degraded = async (): Promise<string | undefined> => (await conditions())['Degraded']

  await name('pull')
  const missing = 'True PullSecretMissing spec.imagePullSecrets: namespace netplane-operator has no secret pull'
  await expect.poll(degraded, SOON).toBe(missing)
  const isCopied = async (text: string): Promise<number> => {
    await write(text)
    const start = performance.now()
    await expect.poll(copied, { interval: 20 }).toEqual(dataOf(text))
    return performance.now() - start
  }
  await withinBestOfThree(2000, async (tries) => {
    // for the name to be missed again
    if (tries > 1) await client.delete(named(OPERATOR, 'pull'))
    if (tries > 1) await expect.poll(degraded, SOON).toBe(missing)
    return await isCopied(`first-${tries}`)
  })
  await expect.poll(degraded, SOON).toContain('False AllReady')
  await withinBestOfThree(2000, (tries) => isCopied(`second-${tries}`))
  await isCopied('second')
  // one that another client takes away, or changes
  await client.delete(named('netplane-system', 'pull'))
  await expect.poll(copied, SOON).toEqual(dataOf('second'))
  await client.patch(named('netplane-system', 'pull'), { data: dataOf('other') }, { type: 'merge' })
  await expect.poll(copied, SOON).toEqual(dataOf('second'))
  await client.delete(named(OPERATOR, 'pull'))
  await expect.poll(degraded, SOON).toBe(missing)
  expect(await copied()).toEqual(dataOf('second'))
  await name()
  await expect.poll(() => found(named('netplane-system', 'pull')), SOON).toBeUndefined()
  await expect.poll(degraded, SOON).toContain('False AllReady')
})

test('of secrets the operator has rights in the two namespaces alone', async () => {
  const may = async (namespace: string, verb: string): Promise<boolean> => {
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' }
    const user = `system:serviceaccount:${OPERATOR}:${OPERATOR}`
    const spec = { user, resourceAttributes: { namespace, verb, resource: 'secrets', version: 'v1' } }
    const answer = await client.request({
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      body: { ...review, spec },
    })
    return isObject(answer) && isObject(answer['status']) && answer['status']['allowed'] === true
  }
  const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']
  const allowed = async (namespace: string): Promise<readonly string[]> =>
    (await Promise.all(verbs.map(async (verb) => ((await may(namespace, verb)) ? [verb] : [])))).flat()
  expect(await allowed(OPERATOR)).toEqual(['list', 'watch'])
  expect(await allowed('netplane-system')).toEqual(['get', 'list', 'watch', 'create', 'patch', 'delete'])
  // empty: in all of the cluster
  for (const other of ['kube-system', '']) expect(await allowed(other)).toEqual([])
})

test('a spec that is refused is not Available, of its generation; what runs goes on, and what else was known stays', async () => {
  const counts = { desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberMisscheduled: 0, numberReady: 2 }
  const { metadata } = await client.get(AGENTS)
  const status = { ...counts, numberAvailable: 2, observedGeneration: metadata.generation }
  await client.patch(AGENTS, { status }, { type: 'merge', subresource: 'status' })
  await expect.poll(async () => (await conditions())['Available'], SOON).toContain('True AllReady')
  const generationOf = async (name: string): Promise<unknown> =>
    fieldsOf((await found({ ...INSTALLATION, kind: 'NetplaneStatus', name }))?.['status'])['observedGeneration']
  const before = (await client.get(INSTALLATION)).metadata.generation
  await expect.poll(() => generationOf('services'), SOON).toBe(before)
  const ask = (cni: object | null, mtu: number | null): Promise<ApiObject> =>
    client.patch(INSTALLATION, { spec: { cni, netplaneNetwork: { mtu } } }, { type: 'merge' })
  const refused = (await ask({ type: 'Chained' }, 1400)).metadata.generation
  const cause = "InstallationInvalid spec.netplaneNetwork.mtu: is the other plugin's where spec.cni.type is Chained; it is 1400"
  await expect.poll(conditions, SOON).toMatchObject({ Available: `False ${cause}`, Degraded: `True ${cause}` })
  expect(await generationOf('network')).toBe(refused)
  expect(await generationOf('services')).toBe(before)
  expect((await client.get(AGENTS)).metadata.generation).toBe(metadata.generation)
  const after = (await ask(null, null)).metadata.generation
  await expect.poll(async () => (await conditions())['Available'], SOON).toContain('True AllReady')
  await expect.poll(() => generationOf('services'), SOON).toBe(after)
})

test('an Installation that is deleted while the datastore is locked stays, says why, and goes with all that is its own', async () => {
  const configurations = (): Promise<readonly ApiObject[]> => client.list({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' })
  expect((await configurations()).map(({ metadata, spec }) => [metadata.name, spec])).toEqual([['default', { bpfEnabled: true }]])
  await client.patch(CLUSTER_INFORMATION, { spec: { datastoreReady: false } }, { type: 'merge' })
  await client.delete(INSTALLATION)
  const locked = 'FelixConfiguration default: the datastore is locked: ClusterInformation default has datastoreReady: false'
  await expect.poll(async () => (await conditions())['Degraded'], SOON).toBe(`True DatastoreLocked ${locked}`)
  expect((await conditions())['Progressing']).toContain('True Removing')
  expect(await found(INSTALLATION)).toBeDefined()
  expect(await configurations()).toHaveLength(1)
  await client.patch(CLUSTER_INFORMATION, { spec: { datastoreReady: true } }, { type: 'merge' })
  await expect.poll(() => found(INSTALLATION), SOON).toBeUndefined()
  expect(await configurations()).toEqual([])
})

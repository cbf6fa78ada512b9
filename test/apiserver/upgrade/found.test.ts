// SPDX-License-Identifier: Apache-2.0
/** Installations of older versions in a real API server: found there, and in files that were printed of it. Layer:
 * test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { getOrNone, listOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { servedKinds } from '#lib/api/served-kinds.ts'
import { findInstallation } from '#upgrade/found/find.ts'
import { factsFromFiles } from '#upgrade/found/from-files.ts'
import { factsFromServer } from '#upgrade/found/from-server.ts'
import { waitFor } from '../../../lab/wait.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { definition, FORMS, installed, object, type Form } from '../../upgrade/found/installed.ts'
import { put } from '../definitions.ts'

const BUILD_MS = 30 * 60_000
const SIGNAL = AbortSignal.timeout(BUILD_MS)

const GONE = { timeoutMs: 30_000, everyMs: 100 }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

/** What the server has by itself is the same before and after. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-found-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const namespace of ['netplane-system', 'netplane-operator', 'shop', 'istio-system'])
    await put(client, object('v1 Namespace', namespace))
  for (const namespace of ['kube-system', 'netplane-system', 'shop']) await put(client, object('v1 ServiceAccount', `${namespace}/default`))
  for (const one of OTHERS) await put(client, one)
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const OTHERS = [
  definition('things.example.com', { group: 'example.com', version: 'v1', kind: 'Thing' }),
  object('example.com/v1 Thing', 'x', { spec: { a: 1 } }),
  object('v1 Secret', 'shop/password', { stringData: { key: 'not to be seen' } }),
  object('v1 ConfigMap', 'shop/menu', { data: { soup: 'of the day' } }),
  object('v1 ConfigMap', 'istio-system/istio-sidecar-injector', { data: { config: '- name: dikastes' } }),
  object('apps/v1 Deployment', 'shop/web', {
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'w', image: 'w' }] } },
    },
  }),
]

/** Namespaces are there already. */
async function install(form: Form): Promise<void> {
  const all = installed('3.27', form).filter(({ kind }) => kind !== 'Namespace')
  for (const one of all) {
    await put(client, one)
    present = [...present, one]
    if (one.kind === 'Pod') await client.patch(namedOf(one), { status: one['status'] }, { type: 'merge', subresource: 'status' })
  }
}

/** Those that are there. */
let present: readonly ApiObject[] = []

afterEach(async () => {
  await remove(present)
  present = []
})

async function remove(objects: readonly ApiObject[]): Promise<void> {
  for (const one of objects.toReversed()) {
    await client.delete(namedOf(one), { gracePeriodSeconds: 0 })
    await waitFor(async () => (await getOrNone(client, namedOf(one)).catch(() => undefined)) === undefined, GONE)
  }
}

/** A file for each kind of which the server keeps objects, as `kubectl get -A -o yaml` prints it. */
async function print(directory: string): Promise<void> {
  mkdirSync(directory)
  for (const kind of (await servedKinds(client)).kinds.filter(({ verbs }) => verbs.has('list') && verbs.has('watch')))
    writeFileSync(
      join(directory, `${kind.apiVersion.replaceAll('/', '-')}-${kind.plural}.yaml`),
      dump({ apiVersion: 'v1', kind: 'List', items: await listOrNone(client, kind) }),
    )
  const serverVersion = await client.request({ method: 'GET', path: '/version' })
  writeFileSync(join(directory, 'version.yaml'), dump({ serverVersion }))
}

test.each(ofMatrix<Form>(FORMS, ['canal', 'chart']))(
  'an installation as %s is found in the server, and in files that were printed of it',
  async (form) => {
    await install(form)
    const directory = join(folder, form)
    await print(directory)
    const [fromServer, fromFiles] = [await factsFromServer(client, SIGNAL), factsFromFiles(directory)]
    expect(findInstallation(fromFiles)).toEqual(findInstallation(fromServer))
    const { found, refusals, warnings } = findInstallation(fromServer)
    expect(refusals).toEqual([])
    expect(warnings.map(({ resource }) => resource)).toEqual(['ConfigMap istio-system/istio-sidecar-injector'])
    expect(found).toMatchObject({ variant: form === 'operator' || form === 'chart' ? 'netplane' : form, version: '3.27.0' })
  },
)

test('no data of Secrets, and nothing of other products, is among the facts of a server', async () => {
  const { objects } = await factsFromServer(client, SIGNAL)
  const names = objects.map((one) => `${one.kind} ${one.metadata.name}`)
  expect(names).toContain('ConfigMap istio-sidecar-injector')
  expect(names.filter((name) => ['Secret password', 'ConfigMap menu', 'Thing x', 'Deployment web'].includes(name))).toEqual([])
})

test('an API server of an older version is not asked: it shows the stored objects once more', async () => {
  await install('netplane')
  const service = object('apiregistration.k8s.io/v1 APIService', 'v3.netplane.io', {
    spec: {
      ...{ group: 'netplane.io', version: 'v3', groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true },
      service: { namespace: 'shop', name: 'none' },
    },
  })
  const tiers = definition('tiers.netplane.io', { group: 'netplane.io', version: 'v3', kind: 'Tier' })
  present = [...present, service, tiers]
  // before the definition, for which the server makes an APIService itself where there is none
  for (const one of [service, tiers]) await put(client, one)
  const { objects } = await factsFromServer(client, SIGNAL)
  expect(objects.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(['v3.netplane.io', 'tiers.netplane.io']))
  expect(objects.filter(({ apiVersion }) => apiVersion === 'netplane.io/v3')).toEqual([])
})

test('facts of a server with definitions of this version have its objects', async () => {
  const tier = object('netplane.io/v3 Tier', 'x', { spec: {} })
  present = [definition('tiers.netplane.io', { group: 'netplane.io', version: 'v3', kind: 'Tier' }), tier]
  for (const one of present) await put(client, one)
  expect((await factsFromServer(client, SIGNAL)).objects).toContainEqual(
    expect.objectContaining({ apiVersion: 'netplane.io/v3', kind: 'Tier' }),
  )
})

// SPDX-License-Identifier: Apache-2.0
/** The operator before a real API server: what it makes, keeps, leaves and says. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { waitFor } from '../../lab/wait.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { put } from './definitions.ts'

const BUILD_MS = 30 * 60_000
const SOON = { timeoutMs: HANG_MS, everyMs: 20 }
const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
const ROLE: Named = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'netplane-node' }
const AGENTS: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-node' }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let operator: ChildProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-operator-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await put(client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-operator' } })
  operator = start()
}, BUILD_MS)

afterAll(async () => {
  operator.kill('SIGTERM')
  if (operator.exitCode === null) await once(operator, 'exit')
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Of the operator that was started last. */
function log(): string {
  return join(folder, 'operator.log')
}

function start(): ChildProcess {
  const program = join(packageRoot(), 'dist/operator/main.js')
  return spawn(process.execPath, [program, '--kubeconfig', cluster.kubeconfig(), '--health-port', '0'], {
    stdio: ['ignore', openSync(log(), 'w'), 'inherit'],
  })
}

async function found(named: Named): Promise<ApiObject | undefined> {
  try {
    return await client.get(named)
  } catch (thrown) {
    if (isRefused(thrown, 'NotFound')) return undefined
    throw thrown
  }
}

function at(object: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), object)
}

async function conditionsOf(component: string): Promise<readonly unknown[]> {
  const conditions: unknown = at(await found({ ...INSTALLATION, kind: 'NetplaneStatus', name: component }), 'status', 'conditions')
  return Array.isArray(conditions) ? (conditions as readonly unknown[]) : []
}

test('an Installation of Standard mode is refused by its field, and makes nothing', async () => {
  const spec = { netplaneNetwork: { linuxDataplane: 'Standard', ipPools: [{ cidr: '10.28.0.0/16', natOutgoing: 'Disabled' }] } }
  await put(client, { ...INSTALLATION, metadata: { name: 'default' }, spec })
  expect((await found(INSTALLATION))?.metadata.generation).toBe(1)
  const message = 'spec.netplaneNetwork.linuxDataplane: must be BPF: this version has no Standard mode'
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining({ type: 'Degraded', message }))
  expect(await found(AGENTS)).toBeUndefined()
})

test('no agents come where a manifest has made some', async () => {
  const manifest = { ...AGENTS, namespace: 'kube-system' }
  const labels = { app: 'x' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  await put(client, {
    ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', spec: { selector: { matchLabels: labels }, template } },
    metadata: { namespace: 'kube-system', name: AGENTS.name, labels: { 'app.kubernetes.io/part-of': 'netplane' } },
  })
  await client.patch(INSTALLATION, { spec: { netplaneNetwork: { linuxDataplane: 'BPF' } } }, { type: 'merge' })
  const message = 'DaemonSet kube-system/netplane-node runs agents of another installation: two would want each node'
  const said = expect.objectContaining({ type: 'Degraded', reason: 'OtherInstallation', message }) as unknown
  await expect.poll(() => conditionsOf('network')).toContainEqual(said)
  expect(await found(AGENTS)).toBeUndefined()
  // of another's account nothing is taken either: the next test's is there before the agents come
  await put(client, { ...ROLE, metadata: { name: ROLE.name, labels: { 'app.kubernetes.io/managed-by': 'terraform' } }, rules: [] })
  await client.delete(manifest, {})
})

test('an object that another client has made is left as it is, its owner named, and no agent comes before it is ours', async () => {
  const name = 'ClusterRole netplane-node'
  const message = `${name}: ${name} belongs to terraform; with the label app.kubernetes.io/managed-by: netplane-operator it is ours`
  const said = { type: 'Degraded', status: 'True', reason: 'BelongsToAnother', message }
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining(said))
  expect((await found(ROLE))?.['rules'] ?? []).toEqual([])
  expect(await found(AGENTS)).toBeUndefined()
  await client.patch(ROLE, { metadata: { labels: { 'app.kubernetes.io/managed-by': 'netplane-operator' } } }, { type: 'merge' })
  await expect.poll(async () => (await found(ROLE))?.['rules'] ?? []).not.toEqual([])
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining({ type: 'Degraded', status: 'False' }))
})

test('an Installation makes the agents of every node', async () => {
  const agents = await waitFor(() => found(AGENTS), SOON)
  expect(at(agents, 'spec', 'template', 'spec', 'hostNetwork')).toBe(true)
})

test('a status says what is waited for, of the generation that it is about', async () => {
  const about = { observedGeneration: 2 }
  // no controller of DaemonSets runs here
  await expect
    .poll(() => conditionsOf('network'))
    .toMatchObject([
      { type: 'Available', status: 'False', reason: 'NotObserved', ...about },
      { type: 'Progressing', status: 'True', ...about },
      { type: 'Degraded', status: 'False', ...about },
    ])
  await expect
    .poll(async () => at(await found(INSTALLATION), 'status', 'conditions'))
    .toMatchObject([{ type: 'Available', status: 'False', ...about }, {}, {}])
})

test('a field of ours that another client changes is put back within 2 s, and its own fields stay', async () => {
  const start = performance.now()
  await client.patch(
    AGENTS,
    { metadata: { labels: { team: 'net' } }, spec: { template: { spec: { hostNetwork: false } } } },
    { type: 'merge' },
  )
  const back = async (): Promise<ApiObject | undefined> => {
    const agents = await found(AGENTS)
    return at(agents, 'spec', 'template', 'spec', 'hostNetwork') === true ? agents : undefined
  }
  const agents = await waitFor(back, SOON)
  expect(performance.now() - start).toBeLessThan(2000)
  expect(agents?.metadata.labels?.['team']).toBe('net')
})

test('the Installation’s status has every default, its spec none', async () => {
  const computed = {
    variant: 'Netplane',
    provider: 'Generic',
    cni: { type: 'Netplane', binDir: '/opt/cni/bin', confDir: '/etc/cni/net.d' },
  }
  await expect.poll(async () => at(await found(INSTALLATION), 'status')).toMatchObject({ observedGeneration: 2, computed })
  expect(at(await found(INSTALLATION), 'spec', 'cni')).toBeUndefined()
})

test('a pool is made once, and an administrator’s change of it stays', async () => {
  const pool: Named = { apiVersion: 'netplane.io/v3', kind: 'IPPool', name: 'ipv4-10-28-0-0-16' }
  expect(at(await waitFor(() => found(pool), SOON), 'spec')).toMatchObject({
    cidr: '10.28.0.0/16',
    vxlanMode: 'CrossSubnet',
    natOutgoing: false,
  })
  await client.patch(pool, { spec: { natOutgoing: true } }, { type: 'merge' })
  await client.patch(INSTALLATION, { spec: { nodeUpdateStrategy: { maxUnavailable: '10%' } } }, { type: 'merge' })
  const maxUnavailable = async (): Promise<unknown> => at(await found(AGENTS), 'spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable')
  await expect.poll(maxUnavailable).toBe('10%')
  expect(at(await found(pool), 'spec', 'natOutgoing')).toBe(true)
})

test('an object with the annotation is left as others make it, until that goes', async () => {
  const ignore = (value: string | null): Promise<unknown> =>
    client.patch(AGENTS, { metadata: { annotations: { 'operator.netplane.io/ignore': value } } }, { type: 'merge' })
  const grace = async (): Promise<unknown> => at(await found(AGENTS), 'spec', 'template', 'spec', 'terminationGracePeriodSeconds')
  await ignore('true')
  await client.patch(AGENTS, { spec: { template: { spec: { terminationGracePeriodSeconds: 77 } } } }, { type: 'merge' })
  await new Promise((resolve) => setTimeout(resolve, 3000))
  expect(await grace()).toBe(77)
  await ignore(null)
  await expect.poll(grace).toBe(10)
})

test('a deleted object, and a label of ours that was taken away, are put back within 2 s', async () => {
  const { metadata } = await client.get(AGENTS)
  const start = performance.now()
  await client.delete(AGENTS, {})
  await waitFor(async () => ((await found(AGENTS))?.metadata.uid === metadata.uid ? undefined : await found(AGENTS)), SOON)
  expect(performance.now() - start).toBeLessThan(2000)
  const label = async (): Promise<string | undefined> => (await found(AGENTS))?.metadata.labels?.['app.kubernetes.io/managed-by']
  await client.patch(AGENTS, { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } }, { type: 'merge' })
  await expect.poll(label, { timeout: 2000 }).toBe('netplane-operator')
})

test('the endpoint of the config map is in the agents’ pods, and stays there while the map is wrong or gone', async () => {
  const map: Named = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'netplane-operator', name: 'cluster-services-endpoint' }
  const hosts = async (): Promise<string> => /"CLUSTER_SERVICE_HOST","value":"([^"]*)"/.exec(JSON.stringify(await found(AGENTS)))?.[1] ?? ''
  const putEndpoint = (data: Readonly<Record<string, string>>): Promise<unknown> =>
    client.apply(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: map.namespace, name: map.name }, data }))
  await putEndpoint({ CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' })
  await expect.poll(hosts).toBe('api.internal')
  await putEndpoint({ CLUSTER_SERVICE_HOST: 'https://api', CLUSTER_SERVICE_PORT: '6443' })
  const message =
    'config map netplane-operator/cluster-services-endpoint: data.CLUSTER_SERVICE_HOST must be a name or an address, without https://'
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining({ type: 'Degraded', message }))
  expect(await hosts()).toBe('api.internal')
  await client.delete(map, {})
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining({ type: 'Degraded', status: 'False' }))
  expect(await hosts()).toBe('api.internal')
})

test('nothing is written while nothing differs, nor by an operator that is killed and starts again', async () => {
  const versions = async (): Promise<readonly unknown[]> => {
    const kinds = [
      ['apps/v1', 'DaemonSet'],
      ['v1', 'ServiceAccount'],
      ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
      ['operator.netplane.io/v1', 'NetplaneStatus'],
      ['operator.netplane.io/v1', 'Installation'],
      ['netplane.io/v3', 'IPPool'],
    ] as const
    const lists = await Promise.all(kinds.map(([apiVersion, kind]) => client.list({ apiVersion, kind })))
    return lists.flat().map(({ metadata }) => metadata.resourceVersion)
  }
  const rest = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms))
  // what the tests before have changed is written by then
  let before: readonly unknown[] = []
  for (let again = await versions(); JSON.stringify(again) !== JSON.stringify(before); again = await versions()) {
    before = again
    await rest(1000)
  }
  await rest(5000)
  expect(await versions()).toEqual(before)
  operator.kill('SIGKILL')
  await once(operator, 'exit')
  operator = start()
  await waitFor(() => Promise.resolve(readFileSync(log(), 'utf8').includes('"event":"lease.taken"') ? true : undefined), {
    timeoutMs: 30_000,
  })
  await rest(3000)
  expect(await versions()).toEqual(before)
})

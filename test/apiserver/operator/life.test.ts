// SPDX-License-Identifier: Apache-2.0
/** The operator before a real API server: what it makes, keeps, leaves and says. Layer: test. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { finding } from '#lib/preflight/findings.ts'
import { MOST_REPORT_BYTES, writeReport, type NodeReport } from '#lib/preflight/report.ts'
import { RUN_ANNOTATION } from '#lib/preflight/results.ts'
import { waitFor } from '../../../lab/wait.ts'
import { at } from '../objects.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { AGENTS, BUILD_MS, INSTALLATION, OperatorCluster } from './operator-cluster.ts'

const SOON = { timeoutMs: HANG_MS, everyMs: 20 }
const ROLE: Named = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'netplane-node' }
const ENDPOINT: Named = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'netplane-operator', name: 'cluster-services-endpoint' }

/** Where the operator of this file has its metrics. */
const METRICS = 19_098

let on: OperatorCluster
let client: ApiClient

beforeAll(async () => {
  on = await OperatorCluster.start()
  client = on.client
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-operator' } }))
  start()
}, BUILD_MS)

afterAll(async () => {
  await on[Symbol.asyncDispose]()
})

function start(): void {
  on.startOperator(on.cluster.kubeconfig(), '--metrics-port', `${METRICS}`)
}

const found = (named: Named): Promise<ApiObject | undefined> => on.found(named)

const conditionsOf = (component: string): Promise<readonly unknown[]> => on.conditions(component)

async function putEndpoint(data: Readonly<Record<string, string>>): Promise<void> {
  const { apiVersion, kind, namespace, name } = ENDPOINT
  await client.apply(asApiObject({ apiVersion, kind, metadata: { namespace, name }, data }))
}

/** By which agents ask. */
async function hostInUse(): Promise<string> {
  return /"CLUSTER_SERVICE_HOST","value":"([^"]*)"/.exec(JSON.stringify((await found(AGENTS)) ?? {}))?.[1] ?? ''
}

async function runOf(name: string): Promise<string> {
  const annotations = at(await waitFor(() => found({ ...AGENTS, name }), SOON), 'spec', 'template', 'metadata', 'annotations')
  return String(isObject(annotations) ? annotations[RUN_ANNOTATION] : '')
}

type Told = Pick<NodeReport, 'findings' | 'facts'>

/** As the kubelet of node n1 tells of the pod that the DaemonSet's controller makes. */
async function answer(name: string, pod: string, { findings = [], facts = {} }: Partial<Told> = {}): Promise<void> {
  const labels = { 'app.kubernetes.io/name': name }
  const containers = [{ name: 'endpoint', image: 'i' }]
  const made = await client.create(
    asApiObject({
      ...{
        apiVersion: 'v1',
        kind: 'Pod',
        spec: { nodeName: 'n1', initContainers: containers, containers: [{ name: 'rest', image: 'i' }] },
      },
      metadata: { namespace: AGENTS.namespace, name: pod, labels, annotations: { [RUN_ANNOTATION]: await runOf(name) } },
    }),
  )
  const terminated = { exitCode: 0, message: writeReport(findings, MOST_REPORT_BYTES, facts) }
  const initContainerStatuses = [{ name: 'endpoint', image: 'i', imageID: 'i', ready: true, restartCount: 0, state: { terminated } }]
  await client.patch(namedOf(made), { status: { initContainerStatuses } }, { type: 'merge', subresource: 'status' })
}

test('an Installation that asks for what is not there is refused by its field, and makes nothing', async () => {
  const spec = { cni: { type: 'Chained' }, netplaneNetwork: { mtu: 1400, ipPools: [{ cidr: '10.28.0.0/16', natOutgoing: 'Disabled' }] } }
  const made = await waitFor(
    () => client.create(asApiObject({ ...INSTALLATION, metadata: { name: 'default' }, spec })).catch(() => undefined),
    SOON,
  )
  expect(made?.metadata.generation).toBe(1)
  const message = "spec.netplaneNetwork.mtu: is the other plugin's where spec.cni.type is Chained; it is 1400"
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining({ type: 'Degraded', message }))
  expect(await found(AGENTS)).toBeUndefined()
})

test('no agents come where a manifest has made some', async () => {
  const manifest = { ...AGENTS, namespace: 'kube-system' }
  const labels = { app: 'x' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  await client.create(
    asApiObject({
      ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', spec: { selector: { matchLabels: labels }, template } },
      metadata: { namespace: 'kube-system', name: AGENTS.name, labels: { 'app.kubernetes.io/part-of': 'netplane' } },
    }),
  )
  await client.patch(INSTALLATION, { spec: { cni: null, netplaneNetwork: { linuxDataplane: 'BPF', mtu: null } } }, { type: 'merge' })
  const message = 'DaemonSet kube-system/netplane-node runs agents of another installation: two would want each node'
  const said = expect.objectContaining({ type: 'Degraded', reason: 'OtherInstallation', message }) as unknown
  await expect.poll(() => conditionsOf('network')).toContainEqual(said)
  expect(await found(AGENTS)).toBeUndefined()
  // of another's account nothing is taken either: the next test's is there before the agents come
  await client.create(
    asApiObject({ ...ROLE, metadata: { name: ROLE.name, labels: { 'app.kubernetes.io/managed-by': 'terraform' } }, rules: [] }),
  )
  await client.delete(manifest, {})
})

test('a preflight that finds no way to the API server says what to do, and nothing is made', async () => {
  const message = 'there is no config map netplane-operator/cluster-services-endpoint, and no kube-proxy that would serve the API server'
  const said = { type: 'Degraded', status: 'True', reason: 'Blocked', message: expect.stringContaining(message) as unknown }
  await expect.poll(() => conditionsOf('preflight')).toContainEqual(expect.objectContaining(said))
  // which is written after that of the preflight
  await expect
    .poll(() => conditionsOf('network'))
    .toContainEqual(expect.objectContaining({ type: 'Available', status: 'False', reason: 'Preflight' }))
  expect(await found({ ...AGENTS, apiVersion: 'v1', kind: 'ServiceAccount' })).toBeUndefined()
  await putEndpoint({ CLUSTER_SERVICE_HOST: 'first.internal', CLUSTER_SERVICE_PORT: '6443' })
})

test('an object that another client has made is left as it is, its owner named, and no agent comes before it is ours', async () => {
  const name = 'ClusterRole netplane-node'
  const message = `${name}: ${name} belongs to terraform (app.kubernetes.io/managed-by: terraform); with the label app.kubernetes.io/managed-by: netplane-operator it is ours`
  const said = { type: 'Degraded', status: 'True', reason: 'BelongsToAnother', message }
  await expect.poll(() => conditionsOf('network'), { timeout: 30_000 }).toContainEqual(expect.objectContaining(said))
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
  const back = async (): Promise<ApiObject | undefined> => {
    const agents = await found(AGENTS)
    return at(agents, 'spec', 'template', 'spec', 'hostNetwork') === true ? agents : undefined
  }
  let agents: ApiObject | undefined
  await withinBestOfThree(2000, async () => {
    const start = performance.now()
    await client.patch(
      AGENTS,
      { metadata: { labels: { team: 'net' } }, spec: { template: { spec: { hostNetwork: false } } } },
      { type: 'merge' },
    )
    agents = await waitFor(back, SOON)
    return performance.now() - start
  })
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
  const refused = client.patch(INSTALLATION, { spec: { nodeUpdateStrategy: { maxUnavailable: '0%' } } }, { type: 'merge' })
  await expect(refused).rejects.toThrow(/spec\.nodeUpdateStrategy\.maxUnavailable: .*a percentage like 10%; it is '0%'/)
  for (const cidr of ['10.28.0.5/16', 'fd00:28::1/48']) {
    const unclear = client.patch(INSTALLATION, { spec: { netplaneNetwork: { ipPools: [{ cidr }] } } }, { type: 'merge' })
    await expect(unclear).rejects.toThrow(/spec\.netplaneNetwork\.ipPools\[0\]\.cidr: .*must begin with the first address of the range/)
  }
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
  await withinBestOfThree(2000, async () => {
    const { metadata } = await client.get(AGENTS)
    const start = performance.now()
    await client.delete(AGENTS, {})
    const another = await waitFor(
      async () => ((await found(AGENTS))?.metadata.uid === metadata.uid ? undefined : await found(AGENTS)),
      SOON,
    )
    expect(another).toBeDefined()
    return performance.now() - start
  })
  const label = async (): Promise<string | undefined> => (await found(AGENTS))?.metadata.labels?.['app.kubernetes.io/managed-by']
  await withinBestOfThree(2000, async () => {
    await client.patch(AGENTS, { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } }, { type: 'merge' })
    const start = performance.now()
    await expect.poll(label, { interval: 20 }).toBe('netplane-operator')
    return performance.now() - start
  })
})

test('an endpoint is used once every node has reached the API server by it', async () => {
  expect(await hostInUse()).toBe('first.internal')
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { 'kubernetes.io/os': 'linux' } } }))
  await putEndpoint({ CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' })
  const message =
    'agents ask the API server at first.internal:6443 until every node has reached it at api.internal:6443: 0 nodes have answered; waiting for n1'
  await expect
    .poll(() => conditionsOf('network'))
    .toContainEqual(expect.objectContaining({ type: 'Degraded', status: 'True', reason: 'EndpointUnproven', message }))
  expect(await hostInUse()).toBe('first.internal')
  const told = { findings: [finding('endpoint-refused', '10.0.0.1:6443')], facts: { addresses: '10.28.0.5' } }
  await answer('netplane-endpoint-proof', 'refused', told)
  const refusals = [
    'api.internal (10.28.0.5) is an address that pods get (pool ipv4-10-28-0-0-16), and another pod may have it tomorrow',
    'n1: 10.0.0.1:6443 refuses connections; check the port',
  ]
  for (const refusal of refusals)
    await expect
      .poll(() => conditionsOf('network'))
      .toContainEqual(expect.objectContaining({ type: 'Degraded', message: expect.stringContaining(refusal) as unknown }))
  expect(await hostInUse()).toBe('first.internal')
  // asked again after a while, by which time it has been put right
  const before = await runOf('netplane-endpoint-proof')
  await expect.poll(() => runOf('netplane-endpoint-proof'), { timeout: 40_000 }).not.toBe(before)
  await answer('netplane-endpoint-proof', 'reached')
  await expect.poll(hostInUse).toBe('api.internal')
  await expect.poll(() => found({ ...AGENTS, name: 'netplane-endpoint-proof' })).toBeUndefined()
  await client.delete({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, {})
}, 90_000)

test('an endpoint stays in use while the config map is wrong or gone, also when the DaemonSet comes back', async () => {
  await putEndpoint({ CLUSTER_SERVICE_HOST: 'https://api', CLUSTER_SERVICE_PORT: '6443' })
  const message =
    'config map netplane-operator/cluster-services-endpoint: data.CLUSTER_SERVICE_HOST must be a name or an address, without https://'
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining({ type: 'Degraded', message }))
  expect(await hostInUse()).toBe('api.internal')
  await client.delete(ENDPOINT, {})
  await expect.poll(() => conditionsOf('network')).toContainEqual(expect.objectContaining({ type: 'Degraded', status: 'False' }))
  await client.delete(AGENTS, {})
  await expect.poll(hostInUse).toBe('api.internal')
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
  await on.stopOperator('SIGKILL')
  start()
  await waitFor(() => Promise.resolve(readFileSync(on.log, 'utf8').includes('"event":"lease.taken"') ? true : undefined), {
    timeoutMs: 30_000,
  })
  await rest(3000)
  expect(await versions()).toEqual(before)
})

test('metrics say who acts, what holds, and how much was written', async () => {
  const text = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${METRICS}/metrics`)).text()
  await expect.poll(text).toMatch(/^netplane_operator_leader 1$/m)
  expect(await text()).toMatch(/^netplane_operator_condition\{component="network",type="Available"\} 0$/m)
  await client.delete(ROLE, {})
  await expect.poll(text).toMatch(/^netplane_operator_writes_total\{kind="ClusterRole"\} 1$/m)
})

test('events of the Installation say what was wrong', async () => {
  const events = await client.list(
    { apiVersion: 'v1', kind: 'Event', namespace: 'default' },
    { fieldSelector: 'involvedObject.kind=Installation' },
  )
  const said = events.map(({ type, reason, message }) => `${String(type)} ${String(reason)} ${String(message)}`)
  expect(said).toContainEqual(
    expect.stringMatching(/^Warning BelongsToAnother network: ClusterRole netplane-node: .* belongs to terraform/),
  )
  // first that nodes are asked, then what they have found: once, though they are asked again
  const unproven = said.filter((text) => text.startsWith('Warning EndpointUnproven network: '))
  expect(unproven.filter((text) => text.includes(' 0 nodes have answered; waiting for n1'))).toHaveLength(1)
  expect(unproven.filter((text) => text.includes(' n1: 10.0.0.1:6443 refuses connections'))).toHaveLength(1)
})

test('a deleted Installation goes once nodes are clean, or left; pools, definitions and the namespace stay', async () => {
  for (const name of ['n1', 'n2'])
    await client.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/os': 'linux' } } }))
  const { metadata } = await client.patch(INSTALLATION, { spec: { nodeUpdateStrategy: { nodeTimeout: '12s' } } }, { type: 'merge' })
  await client.delete(INSTALLATION, {})
  const cleanup: Named = { ...AGENTS, name: 'netplane-cleanup' }
  await waitFor(() => found(cleanup), SOON)
  expect(await found(AGENTS)).toBeUndefined()
  await expect
    .poll(() => conditionsOf('network'))
    .toContainEqual(
      expect.objectContaining({ type: 'Progressing', status: 'True', reason: 'Removing', message: 'still to be cleaned: n1, n2' }),
    )
  // another operator goes on where this one has ended
  await on.stopOperator('SIGKILL')
  start()
  const pod: Named = { apiVersion: 'v1', kind: 'Pod', namespace: 'netplane-system', name: 'cleanup-n1' }
  await client.create(
    asApiObject({
      ...{ apiVersion: 'v1', kind: 'Pod', spec: { nodeName: 'n1', containers: [{ name: 'done', image: 'i' }] } },
      metadata: { namespace: pod.namespace, name: pod.name, labels: { 'app.kubernetes.io/name': cleanup.name } },
    }),
  )
  const conditions = [{ type: 'Ready', status: 'True' }]
  await client.patch(pod, { status: { conditions } }, { type: 'merge', subresource: 'status' })
  // nothing runs on n2, and its kubelet is not silent
  await expect.poll(() => found(INSTALLATION), { timeout: 40_000 }).toBeUndefined()
  const told = async (): Promise<readonly unknown[]> => {
    const of = { fieldSelector: `involvedObject.uid=${metadata.uid ?? ''},reason=NodesLeft` }
    return (await client.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' }, of)).map(({ message }) => message)
  }
  await expect.poll(told).toEqual(['not clean after 12s: n2'])
  for (const gone of [cleanup, ROLE, { ...ROLE, kind: 'ClusterRoleBinding' }]) expect(await found(gone)).toBeUndefined()
  await expect.poll(() => client.list({ apiVersion: INSTALLATION.apiVersion, kind: 'NetplaneStatus' })).toEqual([])
  const stays: readonly Named[] = [
    { apiVersion: 'netplane.io/v3', kind: 'IPPool', name: 'ipv4-10-28-0-0-16' },
    { apiVersion: 'v1', kind: 'Namespace', name: 'netplane-system' },
    { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name: 'installations.operator.netplane.io' },
  ]
  for (const one of stays) expect(await found(one)).toBeDefined()
})

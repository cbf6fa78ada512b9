// SPDX-License-Identifier: Apache-2.0
/** What installs go wrong by, before a real API server: an address of the API server that does not last, a kube-proxy
 * beside us, and one in IPVS mode. Each is found, told with its remedy, and keeps the operator from what would break.
 * The rows are those of docs/troubleshooting.md. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { finding, type Finding, type ProbeGroup } from '#lib/preflight/findings.ts'
import { writeReport } from '#lib/preflight/report.ts'
import { RUN_ANNOTATION } from '#lib/preflight/results.ts'
import { ENDPOINT_MAP } from '#lib/render/input.ts'
import { ENDPOINT_PROOF, PREFLIGHT } from '#lib/render/preflight-pod.ts'
import { put } from '../definitions.ts'
import { AGENTS, BUILD_MS, INSTALLATION, OPERATOR, OperatorCluster } from './operator-cluster.ts'

/** Nodes are asked again 20 s after they have answered. */
const SOON = { timeout: 60_000, interval: 100 }
const KUBE_PROXY: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: 'kube-proxy' }
/** With API servers, by name: addresses. */
const NODES = { 'cp-1': '192.0.2.11', 'cp-2': '192.0.2.12' } as const
const BALANCER = 'api.internal'

let on: OperatorCluster
let client: ApiClient

beforeAll(async () => {
  on = await OperatorCluster.start()
  client = on.client
  await put(client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR } })
  for (const [name, address] of Object.entries(NODES)) await makeNode(name, address)
  await makeKubeProxy()
  await setProxyMode('iptables')
  on.startOperator()
}, BUILD_MS)

afterAll(async () => {
  await on[Symbol.asyncDispose]()
})

async function makeNode(name: string, address: string): Promise<void> {
  const labels = { 'kubernetes.io/os': 'linux', 'node-role.kubernetes.io/control-plane': '' }
  await put(client, { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } })
  const status = { addresses: [{ type: 'InternalIP', address }] }
  await client.patch({ apiVersion: 'v1', kind: 'Node', name }, { status }, { type: 'merge', subresource: 'status' })
}

/** As kubeadm makes it. */
async function makeKubeProxy(): Promise<void> {
  const { apiVersion, kind, namespace, name } = KUBE_PROXY
  const labels = { 'k8s-app': 'kube-proxy' }
  const template = { metadata: { labels }, spec: { containers: [{ name, image: 'kube-proxy' }] } }
  await put(client, { apiVersion, kind, metadata: { namespace, name }, spec: { selector: { matchLabels: labels }, template } })
}

async function setProxyMode(mode: string): Promise<void> {
  const metadata = { namespace: 'kube-system', name: 'kube-proxy' }
  const data = { 'config.conf': `kind: KubeProxyConfiguration\nmode: ${mode}\n` }
  await client.apply(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }))
}

async function setEndpoint(host: string): Promise<void> {
  const data = { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: '6443' }
  await client.apply(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: OPERATOR, name: ENDPOINT_MAP }, data }))
}

const found = (named: Named): Promise<ApiObject | undefined> => on.found(named)

const condition = (component: string, type: string): Promise<string> => on.condition(component, type)

/** By which agents ask. */
async function hostInUse(): Promise<string | undefined> {
  return /"CLUSTER_SERVICE_HOST","value":"([^"]*)"/.exec(JSON.stringify((await found(AGENTS)) ?? {}))?.[1]
}

/** The run that the DaemonSet asks for now; empty: there is none. */
async function runOf(name: string): Promise<string> {
  const template = fieldsOf(fieldsOf((await found({ ...AGENTS, name }))?.['spec'])['template'])
  return textOf(fieldsOf(fieldsOf(template['metadata'])['annotations'])[RUN_ANNOTATION])
}

/** Of a run after `before`, as kubelets tell of the pods that the DaemonSet's controller makes on every node. */
async function answer(
  { name, group, before = '' }: { readonly name: string; readonly group: ProbeGroup; readonly before?: string },
  findings: Partial<Record<keyof typeof NODES, readonly Finding[]>> = {},
): Promise<string> {
  await expect.poll(() => runOf(name), SOON).not.toBe('')
  await expect.poll(() => runOf(name), SOON).not.toBe(before)
  const run = await runOf(name)
  for (const node of ['cp-1', 'cp-2'] as const) {
    const metadata = {
      ...{ namespace: 'netplane-system', generateName: `${name}-` },
      ...{ labels: { 'app.kubernetes.io/name': name }, annotations: { [RUN_ANNOTATION]: run } },
    }
    const containers = [{ name: group, image: 'i' }]
    const spec = { nodeName: node, initContainers: containers, containers: [{ name: 'rest', image: 'i' }] }
    const pod = await client.create(asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: '' }, spec }))
    const terminated = { exitCode: 0, message: writeReport(findings[node] ?? []) }
    const initContainerStatuses = [{ name: group, image: 'i', imageID: 'i', ready: true, restartCount: 0, state: { terminated } }]
    await client.patch(namedOf(pod), { status: { initContainerStatuses } }, { type: 'merge', subresource: 'status' })
  }
  return run
}

/** Nodes are asked anew until what was put right has been read. */
async function answerUntilPassed(): Promise<void> {
  let run = ''
  const available = async (): Promise<string> => {
    const now = await runOf(PREFLIGHT)
    if (now !== '' && now !== run) run = await answer({ name: PREFLIGHT, group: 'devices' })
    return await condition('preflight', 'Available')
  }
  await expect.poll(available, SOON).toContain('True')
}

/** What FelixConfigurations say of the mode, by name; an override of one node is "node.NAME". */
async function modes(): Promise<Readonly<Record<string, unknown>>> {
  const all = await client.list({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' })
  return Object.fromEntries(all.map(({ metadata, spec }) => [metadata.name, fieldsOf(spec)['bpfEnabled']]))
}

/** Neither agents nor what they need, and kube-proxy as its owner made it. */
async function expectNothingChanged(): Promise<void> {
  expect(await found(AGENTS)).toBeUndefined()
  expect(await found({ ...AGENTS, apiVersion: 'v1', kind: 'ServiceAccount' })).toBeUndefined()
  expect(await modes()).toEqual({})
  expect((await client.get(KUBE_PROXY)).metadata.generation).toBe(1)
}

const ONE_NODE =
  '192.0.2.11 is the address of node cp-1 alone, and other nodes have API servers as well; ' +
  'set CLUSTER_SERVICE_HOST to a load balancer or a name of all of them: netplanectl install endpoint'

test('an address of one of several API servers blocks the preflight', async () => {
  await setEndpoint(NODES['cp-1'])
  const spec = { netplaneNetwork: { linuxDataplane: 'Standard' } }
  const installation = asApiObject({ ...INSTALLATION, metadata: { name: 'default' }, spec })
  await expect.poll(() => client.create(installation).then(Boolean, () => false), SOON).toBe(true)
  await expect.poll(() => condition('preflight', 'Degraded'), SOON).toContain(`True Blocked ${ONE_NODE}`)
  await expectNothingChanged()
  await setEndpoint(BALANCER)
  await expect.poll(() => condition('preflight', 'Degraded'), SOON).not.toContain(ONE_NODE)
}, 120_000)

test('a pool that is to be made and has addresses of services, nodes or another one blocks the preflight', async () => {
  const ask = (ipPools: object | null): Promise<ApiObject> =>
    client.patch(INSTALLATION, { spec: { netplaneNetwork: { ipPools } } }, { type: 'merge' })
  const own = 'give it a range of its own: netplaneNetwork.ipPools of the Installation'
  const taken = (name: string, whose: string): string => `addresses of pool ${name}, which is to be made, are taken: ${whose}; ${own}`
  const rows = [
    [['10.96.0.0/16'], taken('ipv4-10-96-0-0-16', '10.96.0.1 (service default/kubernetes)')],
    [['192.0.2.0/24'], taken('ipv4-192-0-2-0-24', '192.0.2.11 (node cp-1)')],
    [['10.1.2.0/24', '10.1.0.0/16'], taken('ipv4-10-1-0-0-16', '10.1.2.0/24 (pool ipv4-10-1-2-0-24)')],
  ] as const
  for (const [cidrs, text] of rows) {
    await ask(cidrs.map((cidr) => ({ cidr })))
    await expect.poll(() => condition('preflight', 'Degraded'), SOON).toContain(`True Blocked ${text}`)
  }
  await expectNothingChanged()
  expect(await client.list({ apiVersion: 'netplane.io/v3', kind: 'IPPool' })).toEqual([])
  await ask(null)
  await expect.poll(() => condition('preflight', 'Degraded'), SOON).not.toContain(own)
}, 120_000)

const IPVS =
  'kube-proxy is set to IPVS mode (kube-system/kube-proxy); ' +
  'set its mode to iptables, restart it, and restart the nodes one after the other'

test('a kube-proxy in IPVS mode blocks the preflight, and so do nodes on which it has left its addresses', async () => {
  await setProxyMode('ipvs')
  await expect.poll(() => condition('preflight', 'Degraded'), SOON).toContain(`True Blocked ${IPVS}`)
  await expectNothingChanged()
  await setProxyMode('iptables')
  await expect.poll(() => condition('preflight', 'Degraded'), SOON).not.toContain(IPVS)
  const left = await answer({ name: PREFLIGHT, group: 'devices' }, { 'cp-2': [finding('ipvs-device', 'kube-ipvs0', 12)] })
  const device = "cp-2: kube-ipvs0 has 12 addresses of services: kube-proxy's IPVS mode runs here or has left them"
  const restart = 'switch kube-proxy to iptables mode, then restart the node'
  await expect.poll(() => condition('preflight', 'Degraded'), SOON).toContain(`True Blocked ${device}; ${restart}`)
  await expect.poll(() => on.installationCondition('Degraded'), SOON).toContain(`True Blocked ${device}; ${restart}`)
  expect(await on.installationCondition('Available')).toContain(`False Blocked ${device}; ${restart}`)
  expect(await condition('network', 'Available')).toContain('False Preflight')
  await expectNothingChanged()
  await answer({ name: PREFLIGHT, group: 'devices', before: left })
  await expect.poll(() => found(AGENTS), SOON).toBeDefined()
}, 240_000)

test('a switch to BPF mode waits as long as kube-proxy is in IPVS mode, and no node changes', async () => {
  expect(await modes()).toEqual({ default: false })
  await setProxyMode('ipvs')
  await client.patch(INSTALLATION, { spec: { netplaneNetwork: { linuxDataplane: 'BPF', hostPorts: null } } }, { type: 'merge' })
  await expect.poll(() => condition('preflight', 'Degraded'), SOON).toContain(`True Blocked ${IPVS}`)
  const run = await answer({ name: PREFLIGHT, group: 'devices' })
  // asked again: what the nodes have said was read
  await expect.poll(() => runOf(PREFLIGHT), SOON).not.toBe(run)
  expect(await condition('services', 'Progressing')).toContain('True Preflight')
  expect(await modes()).toEqual({ default: false })
  await setProxyMode('iptables')
  await answerUntilPassed()
}, 240_000)

test('a kube-proxy that runs beside us is named with what to do, and is left as it is', async () => {
  const runs = 'DaemonSet kube-system/kube-proxy runs beside us'
  const select = 'once the agents serve, give it a node selector that no node has'
  const keep = 'where the platform keeps it, set bpfProxyIptablesCleanupEnabled to false in FelixConfiguration default'
  await expect.poll(() => condition('preflight', 'Available'), SOON).toBe(`True Warnings ${runs}; ${select}; ${keep}`)
  const told = async (): Promise<readonly string[]> => {
    const of = { fieldSelector: 'involvedObject.kind=Installation' }
    const events = await client.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' }, of)
    return events.map(({ reason, message }) => `${textOf(reason)} ${textOf(message)}`)
  }
  await expect.poll(told, SOON).toContainEqual(expect.stringContaining(`Warnings preflight: ${runs}`))
  const stop = `kubectl -n kube-system patch daemonset kube-proxy --type merge`
  const beside = `True BesideKubeProxy ${runs}; to stop it once services are Available: ${stop}`
  await expect.poll(() => condition('proxy', 'Available'), SOON).toContain(beside)
  expect((await client.get(KUBE_PROXY)).metadata.generation).toBe(1)
  await client.patch(KUBE_PROXY, { spec: { template: { spec: { nodeSelector: { never: 'true' } } } } }, { type: 'merge' })
  await expect.poll(() => condition('proxy', 'Available'), SOON).toContain('True KubeProxyStopped')
  await expect.poll(() => condition('preflight', 'Available'), SOON).toBe('True Passed nothing is in the way')
}, 120_000)

test('an address of one of several API servers is not used later either, though every node reaches it', async () => {
  expect(await hostInUse()).toBe(BALANCER)
  await setEndpoint(NODES['cp-1'])
  const kept = `agents ask the API server at ${BALANCER}:6443 until every node has reached it at ${NODES['cp-1']}:6443`
  await expect.poll(() => condition('network', 'Degraded'), SOON).toBe(`True EndpointUnproven ${kept}: ${ONE_NODE}`)
  const run = await answer({ name: ENDPOINT_PROOF, group: 'endpoint' })
  // asked again: what the nodes have said was read
  await expect.poll(() => runOf(ENDPOINT_PROOF), SOON).not.toBe(run)
  expect(await hostInUse()).toBe(BALANCER)
  expect(await condition('network', 'Degraded')).toBe(`True EndpointUnproven ${kept}: ${ONE_NODE}`)
  await setEndpoint(BALANCER)
  await expect.poll(() => condition('network', 'Degraded'), SOON).toContain('False AllReady')
  await expect.poll(() => found({ ...AGENTS, name: ENDPOINT_PROOF }), SOON).toBeUndefined()
}, 180_000)

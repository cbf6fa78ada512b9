// SPDX-License-Identifier: Apache-2.0
/** The switch between kube-proxy and us by a real operator, API server and controllers; kubelets and agents are played.
 * Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { Informer } from '#lib/api/informer.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { at, listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { Random } from '../../../soak/random.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { AskedPort, AskingPods } from '../../../testkit/kubernetes/kubelets/asking-pods.ts'
import { TestAgents } from '../../../testkit/kubernetes/kubelets/test-agents.ts'
import { TestKubelets } from '../../../testkit/kubernetes/kubelets/test-kubelets.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { SEED } from '../../support/steady/seed.ts'
import { put } from '../definitions.ts'
import { OPERATOR_PROGRAM } from '../run.ts'

const BUILD_MS = 30 * 60_000
const SOON = { timeout: 60_000, interval: 50 }
const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
const LEASE: Named = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'netplane-operator', name: 'netplane-operator' }
const PROXY: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: 'kube-proxy' }
const ASKING: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-outside' }
const FELIX = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' } as const

const nodes = ['n1', 'n2', 'n3', 'n4']
/** the operator's */
const OWN = 'n4'

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let kubelets: TestKubelets
let agents: TestAgents
let operator: ChildProcess
let proxies: Informer
const stop = new AbortController()
/** of all moments */
const random = new Random(SEED)
/** nodes that say nothing */
const silent = new Set<string>()
/** in the operator's place */
const asking = new AskingPods()

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-operator-switch-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder, controllers: true })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  kubelets = new TestKubelets({ client, startMs: 100, says: (pod) => asking.says(pod) })
  await kubelets.add(nodes)
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-operator' } }))
  const data = { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' }
  await put(client, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', data },
    metadata: { namespace: 'netplane-operator', name: 'cluster-services-endpoint' },
  })
  await put(client, kubeProxy())
  proxies = new Informer({
    ...{ client, clock: systemClock, onChange: () => undefined, onFailure: () => undefined },
    collection: { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system' },
  })
  void proxies.run(stop.signal)
  operator = startOperator()
  agents = new TestAgents({ client, nodes: agentNodes, isProxyExpected, delayMs: 150, random: () => random.next() })
}, BUILD_MS)

afterAll(async () => {
  await killOperator()
  stop.abort()
  await agents[Symbol.asyncDispose]()
  await kubelets[Symbol.asyncDispose]()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

afterEach(() => {
  expect([...agents.unserved]).toEqual([])
})

/** In each of three switches; the soak has more. */
const KILLS = Number(process.env['KILLS'] ?? 2)

const rest = (ms: number): Promise<void> => systemClock.sleep(ms, stop.signal)

/** As kubeadm makes it. */
function kubeProxy(): object {
  const labels = { 'k8s-app': 'kube-proxy' }
  const spec = {
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    hostNetwork: true,
    tolerations: [{ operator: 'Exists' }],
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'kube-proxy', image: 'i' }],
  }
  const { apiVersion, kind, namespace, name } = PROXY
  const template = { metadata: { labels }, spec }
  return { apiVersion, kind, metadata: { namespace, name, labels }, spec: { selector: { matchLabels: labels }, template } }
}

function startOperator(): ChildProcess {
  const log = openSync(join(folder, 'operator.log'), 'a')
  const child = spawn(process.execPath, [OPERATOR_PROGRAM, '--kubeconfig', cluster.kubeconfig(), '--health-port', '0', '--node', OWN], {
    stdio: ['ignore', log, 'inherit'],
  })
  closeSync(log)
  return child
}

async function killOperator(): Promise<void> {
  if (operator.exitCode !== null || operator.signalCode !== null) return
  const closed = once(operator, 'close')
  operator.kill('SIGKILL')
  await closed
}

/** With a pod of the agents that is ready. */
function agentNodes(): readonly string[] {
  return kubelets.pods
    .filter((pod) => pod.metadata.labels?.['app.kubernetes.io/name'] === 'netplane-node' && isReady(pod))
    .map((pod) => textAt(pod, 'spec.nodeName') ?? '')
    .filter((node) => !silent.has(node))
}

function isReady(pod: ApiObject): boolean {
  return listAt(pod, 'status.conditions').some((one) => textAt(one, 'type') === 'Ready' && textAt(one, 'status') === 'True')
}

function selectorOf(daemonSet: ApiObject | undefined): unknown {
  return at(daemonSet, 'spec.template.spec.nodeSelector')
}

function isProxyExpected(): boolean {
  return JSON.stringify(selectorOf(proxies.objects.get('kube-system/kube-proxy'))) === JSON.stringify({ 'kubernetes.io/os': 'linux' })
}

async function patch(spec: object, annotations: object = {}): Promise<number> {
  const { metadata } = await client.patch(INSTALLATION, { metadata: { annotations }, spec }, { type: 'merge' })
  return metadata.generation ?? 0
}

const switchTo = (mode: 'BPF' | 'Standard'): Promise<number> => patch({ netplaneNetwork: { linuxDataplane: mode, hostPorts: null } })

/** "True Serving BPF mode on 4 of 4 nodes" */
async function said(component: string, type = 'Available'): Promise<string> {
  const found = await client.get({ ...INSTALLATION, kind: 'NetplaneStatus', name: component }).catch(() => undefined)
  const condition = listAt(found, 'status.conditions').find((one) => textAt(one, 'type') === type)
  return ['status', 'reason', 'message'].map((key) => textAt(condition, key) ?? '').join(' ')
}

async function modeOf(name: string): Promise<unknown> {
  try {
    return at(await client.get({ ...FELIX, name }), 'spec.bpfEnabled')
  } catch (thrown) {
    if (isRefused(thrown, 'NotFound')) return undefined
    throw thrown
  }
}

async function overrides(): Promise<readonly string[]> {
  return (await client.list(FELIX)).map(({ metadata }) => metadata.name).filter((name) => name !== 'default')
}

/** All that is asked for is so, of this generation. */
async function isOver(mode: 'BPF' | 'Standard'): Promise<void> {
  await expect.poll(() => said('services'), SOON).toBe(`True Serving ${mode} mode on ${nodes.length} of ${nodes.length} nodes`)
  const proxy = mode === 'BPF' ? 'True KubeProxyStopped DaemonSet kube-system/kube-proxy is stopped' : /^True KubeProxyServes/
  await expect.poll(() => said('proxy'), SOON).toMatch(proxy)
  expect(await modeOf('default')).toBe(mode === 'BPF')
  await expect.poll(overrides, SOON).toEqual([])
  await expect.poll(() => said('services', 'Progressing'), SOON).toMatch(/^False/)
  expect(await said('services', 'Degraded')).toMatch(/^False/)
}

/** Node ports that the agent of the node names. */
async function nodePortsOf(node: string): Promise<unknown> {
  return at(await client.get({ apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', name: node }), 'status.proof.nodePorts')
}

/** In their order, from there on. */
function switched(from: number): readonly string[] {
  return agents.changes.slice(from).map(({ node, mode }) => `${node} ${mode}`)
}

test('a fresh Installation beside a kube-proxy is Standard, and says so before the first agent', async () => {
  const spec = { netplaneNetwork: { kubeProxyManagement: 'Enabled' }, nodeUpdateStrategy: { nodeTimeout: '45s' } }
  await put(client, { ...INSTALLATION, metadata: { name: 'default' }, spec })
  await isOver('Standard')
  expect(switched(0).toSorted()).toEqual(nodes.map((node) => `${node} Standard`))
  const computed = async (): Promise<unknown> => at(await client.get(INSTALLATION), 'status.computed.netplaneNetwork.linuxDataplane')
  expect(await computed()).toBe('Standard')
}, 120_000)

test('a patch to BPF: one node first, then the others, the default, and kube-proxy last', async () => {
  await patch({ nodeUpdateStrategy: { canary: 'n3' } })
  const before = agents.changes.length
  const generation = await switchTo('BPF')
  await expect.poll(() => said('services'), SOON).toMatch(/^False /)
  await isOver('BPF')
  expect(switched(before)).toEqual(['n3 BPF', 'n1 BPF', 'n2 BPF', 'n4 BPF'])
  expect(selectorOf(await client.get(PROXY))).toEqual({ 'kubernetes.io/os': 'linux', 'netplane.io/kube-proxy': 'disabled' })
  const status = await client.get({ ...INSTALLATION, kind: 'NetplaneStatus', name: 'services' })
  expect(numberAt(status, 'status.observedGeneration')).toBe(generation)
  const told = async (): Promise<readonly string[]> => {
    const events = await client.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' })
    return events.map((event) => `${textAt(event, 'reason') ?? ''} ${textAt(event, 'message') ?? ''}`)
  }
  expect(await told()).toContain('Canary services: to BPF mode, phase canary: n3; still to come: n1, n2, n3, n4')
  const reasons = async (): Promise<readonly string[]> => (await told()).map((one) => one.split(' ')[0] ?? '')
  await expect.poll(reasons, SOON).toEqual(expect.arrayContaining(['Wave', 'Serving', 'Stopping', 'KubeProxyStopped']))
}, 120_000)

test('and back: kube-proxy first, every node is held, and they go one after the other', async () => {
  const before = agents.changes.length
  await switchTo('Standard')
  await expect.poll(() => said('services'), SOON).toMatch(/^False /)
  await isOver('Standard')
  expect(switched(before)).toEqual(['n3 Standard', 'n1 Standard', 'n2 Standard', 'n4 Standard'])
  expect(selectorOf(await client.get(PROXY))).toEqual({ 'kubernetes.io/os': 'linux' })
}, 120_000)

test('a node that does not prove itself goes back alone, and is tried again when it is asked for', async () => {
  agents.break('n2', 'BPF')
  const before = agents.changes.length
  await switchTo('BPF')
  await expect
    .poll(() => said('services', 'Degraded'), SOON)
    .toMatch(/^True ProofFailed n2: Service default\/kubernetes, TCP .*: no answer;/)
  await expect.poll(() => switched(before), SOON).toEqual(['n3 BPF', 'n1 BPF', 'n2 BPF', 'n2 Standard'])
  await rest(3000)
  expect(switched(before)).toHaveLength(4)
  expect(await modeOf('default')).toBe(false)
  expect(await Promise.all(nodes.map((node) => modeOf(`node.${node}`)))).toEqual([true, undefined, true, undefined])
  agents.break('n2', undefined)
  await patch({}, { 'operator.netplane.io/retry-switch': '1' })
  await isOver('BPF')
}, 120_000)

test('a node whose node port no client outside reaches any more goes back alone', async () => {
  const before = agents.changes.length
  // before the node is asked to change, and never again
  using port = new AskedPort(1)
  const place = await port.open()
  agents.nodePorts.set('n1', [place])
  await expect.poll(() => nodePortsOf('n1'), SOON).toEqual([place])
  await switchTo('Standard')
  await expect
    .poll(() => said('services', 'Degraded'), SOON)
    .toMatch(new RegExp(`^True ProofFailed n1: ${place} does not answer from outside the node;`))
  await expect.poll(() => switched(before), SOON).toEqual(['n3 Standard', 'n1 Standard', 'n1 BPF'])
  agents.nodePorts.delete('n1')
  await patch({}, { 'operator.netplane.io/retry-switch': '2' })
  await isOver('Standard')
}, 120_000)

test("the operator's own node is asked by another one, and goes back as any other", async () => {
  const before = agents.changes.length
  using gone = new AskedPort(1)
  using stays = new AskedPort()
  const places = [await gone.open(), await stays.open()]
  agents.nodePorts.set(OWN, places)
  await expect.poll(() => nodePortsOf(OWN), SOON).toEqual(places)
  await switchTo('BPF')
  const why = `${OWN}: ${places[0] ?? ''} does not answer from outside the node;`
  await expect.poll(() => said('services', 'Degraded'), SOON).toMatch(new RegExp(`^True ProofFailed ${why}`))
  await expect.poll(() => switched(before), SOON).toEqual(['n3 BPF', 'n1 BPF', 'n2 BPF', 'n4 BPF', 'n4 Standard'])
  expect(asking.asked).toEqual(['n1 --for=0', 'n1 --for=5'])
  expect([gone.asked, stays.asked]).toEqual([1, 2])
  await expect.poll(() => client.get(ASKING).catch(() => undefined), SOON).toBeUndefined()
  agents.nodePorts.set(OWN, places.slice(1))
  // before the node is tried again: what it names then is asked, and what it names anew once more
  await expect.poll(() => nodePortsOf(OWN), SOON).toEqual(places.slice(1))
  await rest(1000)
  await patch({}, { 'operator.netplane.io/retry-switch': '3' })
  await isOver('BPF')
  expect(asking.asked.slice(2)).toEqual(['n1 --for=0', 'n1 --for=5'])
  expect(stays.asked).toBe(4)
  // and where none says anything, by itself
  asking.isMute = true
  await switchTo('Standard')
  const words = 'node ports of n4 were asked by itself, and not from outside: a pod on n1 has said nothing for 22.5 s'
  await expect.poll(() => said('services'), SOON).toBe(`True Serving Standard mode on 4 of 4 nodes; ${words}`)
  expect([asking.asked.length, stays.asked]).toEqual([4, 6])
  asking.isMute = false
  agents.nodePorts.delete(OWN)
  await switchTo('BPF')
  await isOver('BPF')
}, 240_000)

test('a node that says nothing stops the waves until its time is over, and comes when it is back', async () => {
  await switchTo('Standard')
  await isOver('Standard')
  silent.add('n2')
  kubelets.silence('n2')
  const isSilent = async (): Promise<boolean> =>
    listAt(await client.get({ apiVersion: 'v1', kind: 'Node', name: 'n2' }), 'status.conditions').some(
      (one) => textAt(one, 'type') === 'Ready' && textAt(one, 'status') === 'Unknown',
    )
  await expect.poll(isSilent, SOON).toBe(true)
  const before = agents.changes.length
  await switchTo('BPF')
  await expect.poll(() => said('services'), SOON).toMatch(/not ready, waits up to 45 s: n2/)
  expect(switched(before)).toEqual([])
  await expect
    .poll(() => said('services'), { timeout: 90_000 })
    .toMatch(/^True Serving BPF mode on 3 of 4 nodes; left out, not ready for 45 s: n2$/)
  expect(switched(before)).toEqual(['n3 BPF', 'n1 BPF', 'n4 BPF'])
  await kubelets.wake('n2')
  silent.delete('n2')
  agents.unserved.delete('n2')
  await isOver('BPF')
  agents.unserved.delete('n2')
}, 240_000)

test('an agent whose words are gone has its time anew before it is called silent', async () => {
  silent.add('n4')
  await rest(1000)
  await client.delete({ apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', name: 'n4' })
  await expect.poll(() => said('services'), SOON).toContain('no word of the agent: n4')
  expect(await said('services', 'Degraded')).toMatch(/^False/)
  await expect
    .poll(() => said('services', 'Degraded'), { timeout: 90_000 })
    .toMatch(/^True AgentSilent n4: its agent has said nothing for 45 s; /)
  agents.tellAnew('n4')
  silent.delete('n4')
  await isOver('BPF')
}, 180_000)

test('a kube-proxy that Argo CD manages is not touched, and its name is told', async () => {
  await switchTo('Standard')
  await isOver('Standard')
  const label = (value: string | null): Promise<unknown> =>
    client.patch(PROXY, { metadata: { labels: { 'argocd.argoproj.io/instance': value } } }, { type: 'merge' })
  await label('base')
  await switchTo('BPF')
  const managed = 'DaemonSet kube-system/kube-proxy is not stopped: Argo CD (argocd.argoproj.io/instance: base) manages it; stop it there'
  await expect.poll(() => said('services'), SOON).toMatch(/^True Serving BPF/)
  await expect.poll(() => said('proxy', 'Degraded'), SOON).toBe(`True ManagedByAnother ${managed}`)
  expect(isProxyExpected()).toBe(true)
  await label(null)
  await isOver('BPF')
}, 120_000)

test('settings that an administrator has for a node stay as they are, and ours of it goes', async () => {
  const own = { ...FELIX, name: 'node.n1' }
  await client.create(asApiObject({ ...FELIX, metadata: { name: own.name }, spec: { logSeverityScreen: 'Warning' } }))
  await switchTo('Standard')
  // by its hold every node has one of ours meanwhile
  await expect.poll(() => modeOf(own.name), SOON).toBe(true)
  await expect.poll(() => said('services'), SOON).toMatch(/^True Serving Standard/)
  expect(at(await client.get(own), 'spec')).toEqual({ logSeverityScreen: 'Warning' })
  expect(await overrides()).toEqual([own.name])
  await client.delete(own)
}, 120_000)

test(
  'an operator that is killed again and again comes to the same end, there and back',
  async () => {
    for (const mode of ['BPF', 'Standard', 'BPF'] as const) {
      await switchTo(mode)
      for (let kill = 0; kill < KILLS; kill++) {
        await rest(300 + random.below(1200))
        await killOperator()
        // another need not wait until the time of this one is over
        await client.delete(LEASE).catch(() => undefined)
        operator = startOperator()
      }
      await isOver(mode)
      expect(agents.changes.filter((one) => one.mode === mode).length).toBeGreaterThanOrEqual(nodes.length)
    }
  },
  120_000 + KILLS * 24_000,
)

test('an Installation that is deleted has kube-proxy serve again before its agents go', async () => {
  await client.delete(INSTALLATION)
  await expect
    .poll(() => said('network', 'Progressing'), SOON)
    .toMatch(/^True Removing DaemonSet kube-system\/kube-proxy is to serve again/)
  await expect.poll(() => client.get(INSTALLATION).catch(() => undefined), { timeout: 90_000 }).toBeUndefined()
  expect(isProxyExpected()).toBe(true)
  expect(await client.list(FELIX)).toEqual([])
}, 120_000)

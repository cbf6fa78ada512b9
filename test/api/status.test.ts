// SPDX-License-Identifier: Apache-2.0
/** What an agent tells a real API server of its node. The clock is the test's. Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/cluster-information.ts'
import { parseObject } from '#lib/kube/parse-core.ts'
import type { Pod } from '#lib/model/pod.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { ClusterFacts } from '#agent/status/cluster-information.ts'
import { AGAIN_MS, Events } from '#agent/status/events.ts'
import { GRACE_MS, NodeCondition } from '#agent/status/node-condition.ts'
import { Outbox, WRITTEN, type Subject } from '#agent/status/outbox.ts'
import { LATE_MS, PodConditions, PROGRAMMED } from '#agent/status/pod-conditions.ts'
import type { Refusal } from '#agent/status/refusals.ts'
import { TURN_MS } from '#agent/status/turns.ts'
import { waitFor } from '../../lab/wait.ts'
import { kubernetesPrograms } from '../kubernetes/programs.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { LoopbackCluster } from './loopback-cluster.ts'

const BUILD_MS = 30 * 60_000
const HOUR_MS = 3_600_000
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' } as const
const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web-0' } as const
const AGENTS = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'default', name: 'agents' } as const
const EVENTS = { apiVersion: 'v1', kind: 'Event' } as const
const RUNNING = new AbortController().signal

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-status-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'default' } }))
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

beforeEach(async () => {
  for (const kind of ['Event', 'Pod', 'Service', 'Node'])
    for (const object of await client.list({ apiVersion: 'v1', kind }))
      if (object.metadata.name !== 'kubernetes') await client.delete(namedOf(object), { gracePeriodSeconds: 0 })
  await client.create(asApiObject({ ...NODE, metadata: { name: NODE.name } }))
})

/** Everything that is due at this time. */
async function tell(subject: Subject, now: number): Promise<number> {
  const due = subject.due(now)
  for (const { write } of due) await write(RUNNING)
  return due.length
}

function conditionsOf({ status }: ApiObject): readonly Readonly<Record<string, unknown>>[] {
  const conditions = isObject(status) ? status['conditions'] : undefined
  return Array.isArray(conditions) ? conditions.filter(isObject) : []
}

async function condition(named: Named, type: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  return conditionsOf(await client.get(named)).find((one) => one['type'] === type)
}

async function version(named: Named): Promise<string | undefined> {
  return (await client.get(named)).metadata.resourceVersion
}

describe('the condition of a node', () => {
  const unready: string[] = []
  let known = true
  const agent = ({ wall = () => Date.now(), wasReady = false } = {}) =>
    new NodeCondition({ api: client, node: 'n1', unready: () => unready, wasReady, isKnown: () => known, wall, random: () => 0 })

  beforeEach(() => {
    unready.length = 0
    known = true
  })

  test('is written once, whatever else is there; the next agent writes nothing', async () => {
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady' }
    await client.patch(NODE, { status: { conditions: [ready] } }, { type: 'strategic', subresource: 'status' })
    const one = agent()
    expect([await tell(one, 0), await tell(one, 1000)]).toEqual([1, 0])
    expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsUp' })
    expect(await condition(NODE, 'Ready')).toMatchObject(ready)
    const before = await version(NODE)
    await tell(agent({ wall: () => Date.now() + HOUR_MS }), 0)
    expect(await version(NODE)).toBe(before)
  })

  test('says what is wrong: no network at a start that does not end, and words alone later', async () => {
    const one = agent()
    unready.push('dataplane.programs: E2BIG')
    expect([await tell(one, 0), await tell(one, GRACE_MS - 1), await tell(one, GRACE_MS)]).toEqual([0, 0, 1])
    const down = await condition(NODE, 'NetworkUnavailable')
    expect(down).toMatchObject({ status: 'True', reason: 'NetplaneIsNotReady', message: 'dataplane.programs: E2BIG' })
    unready.length = 0
    await tell(one, GRACE_MS + 1000)
    expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsUp' })
    unready.push('dataplane.routes: EPERM')
    const at = GRACE_MS + 2000
    expect([await tell(one, at), await tell(one, at + GRACE_MS)]).toEqual([0, 1])
    expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsDegraded' })
    unready.push('dataplane.addrs: E2BIG')
    expect([await tell(one, at + GRACE_MS + 59_999), await tell(one, at + GRACE_MS + 60_000)]).toEqual([0, 1])
    expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ message: 'dataplane.routes: EPERM; dataplane.addrs: E2BIG' })
  })

  test('an agent that starts where one before was ready takes no network away, however long it takes', async () => {
    const one = agent({ wasReady: true })
    unready.push('dataplane.programs: E2BIG')
    expect([await tell(one, 0), await tell(one, GRACE_MS)]).toEqual([0, 1])
    expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsDegraded' })
  })

  test('the next Node of the name hears of it as well', async () => {
    const one = agent()
    await tell(one, 0)
    await client.delete(NODE)
    known = false
    await tell(one, 1000)
    await client.create(asApiObject({ ...NODE, metadata: { name: NODE.name } }))
    known = true
    await tell(one, 2000)
    expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False' })
  })

  test('what others have made of it is put right within two hours', async () => {
    const one = agent()
    await tell(one, 0)
    const other = { type: 'NetworkUnavailable', status: 'True', reason: 'NoRouteCreated' }
    await client.patch(NODE, { status: { conditions: [other] } }, { type: 'strategic', subresource: 'status' })
    await tell(one, 2 * HOUR_MS)
    expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsUp' })
  })
})

/** As a kubelet that has started it. */
async function runPod(name: string = POD.name, ...ips: readonly string[]): Promise<void> {
  const podIPs = (ips.length === 0 ? ['10.1.0.7'] : ips).map((ip) => ({ ip }))
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] }
  await client.create(asApiObject({ ...POD, metadata: { namespace: POD.namespace, name }, spec }))
  const conditions = [{ type: 'Ready', status: 'True' }]
  const status = { phase: 'Running', podIP: podIPs[0]?.ip, podIPs, conditions }
  await client.patch({ ...POD, name }, { status }, { type: 'merge', subresource: 'status' })
}

async function podsInStore(): Promise<readonly Pod[]> {
  const objects = await client.list({ apiVersion: 'v1', kind: 'Pod' })
  return objects.flatMap((object) => {
    const parsed = parseObject(object, { kind: 'Pod', namespace: object.metadata.namespace ?? '', name: object.metadata.name })
    return parsed.kind === 'ok' && parsed.value.kind === 'Pod' ? [parsed.value] : []
  })
}

describe('the condition of a pod', () => {
  let pods: readonly Pod[] = []
  let missing: string | undefined
  const agent = () =>
    new PodConditions({
      api: client,
      node: 'n1',
      pods: () => pods,
      interfacePrefix: () => 'npl',
      missingOf: () => missing,
      isReady: () => true,
      wall: () => Date.now(),
    })

  beforeEach(async () => {
    missing = undefined
    await runPod()
    pods = await podsInStore()
  })

  test('is written once, beside those of others; the next agent writes nothing', async () => {
    const one = agent()
    expect([await tell(one, 0), await tell(one, 1000), await tell(one, 2000), await tell(one, 60_000)]).toEqual([1, 1, 0, 0])
    expect(await condition(POD, PROGRAMMED)).toMatchObject({ status: 'True', reason: 'Programmed' })
    expect(await condition(POD, 'Ready')).toMatchObject({ status: 'True' })
    const before = await version(POD)
    const next = agent()
    expect([await tell(next, 0), await tell(next, 1000), await version(POD)]).toEqual([1, 0, before])
  })

  test('says what is missing when it is late, and when it is there', async () => {
    const one = agent()
    missing = 'no program runs at npl1/ingress'
    await tell(one, 0)
    expect([await tell(one, 1000), await tell(one, 1000 + LATE_MS - 1), await tell(one, 1000 + LATE_MS)]).toEqual([0, 0, 1])
    expect(await condition(POD, PROGRAMMED)).toMatchObject({ status: 'False', reason: 'NotProgrammed', message: missing })
    missing = undefined
    expect(await tell(one, 2000 + LATE_MS)).toBe(1)
    expect(await condition(POD, PROGRAMMED)).toMatchObject({ status: 'True', reason: 'Programmed' })
  })

  test('a pod that comes later is asked for by its name; what has no addresses of its own, or goes, is not', async () => {
    const one = agent()
    await tell(one, 0)
    await tell(one, 1000)
    await runPod('late', '10.1.0.8')
    pods = await podsInStore()
    const [first, late] = [pods.find(({ name }) => name === POD.name), pods.find(({ name }) => name === 'late')]
    if (first === undefined || late === undefined) throw new Error('no pods')
    const [host, going] = [
      { ...late, name: 'host', hostNetwork: true },
      { ...late, name: 'going', terminating: true },
    ]
    pods = [first, host, going, late]
    expect([await tell(one, 2000), await tell(one, 3000)]).toEqual([1, 0])
    expect(await condition({ ...POD, name: 'late' }, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('another pod of the name is not taken for the one that was seen', async () => {
    const one = agent()
    await tell(one, 0)
    const due = one.due(1000)
    await client.delete(POD, { gracePeriodSeconds: 0 })
    await runPod()
    for (const { write } of due) await write(RUNNING)
    expect(await condition(POD, PROGRAMMED)).toBeUndefined()
    // as long as the store has the one of before, with the addresses of this one
    expect([await tell(one, 2000), await tell(one, 12_000)]).toEqual([0, 1])
    expect(await condition(POD, PROGRAMMED)).toBeUndefined()
    pods = await podsInStore()
    await tell(one, 13_000)
    expect(await condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a pod of the name with other addresses is not spoken for', async () => {
    const one = agent()
    await tell(one, 0)
    await tell(one, 1000)
    await client.delete(POD, { gracePeriodSeconds: 0 })
    await runPod(POD.name, '10.1.0.9')
    pods = pods.map((pod) => ({ ...pod, podIPs: [...pod.podIPs, ...pod.podIPs] }))
    expect(await tell(one, 2000)).toBe(1)
    expect(await condition(POD, PROGRAMMED)).toBeUndefined()
  })

  test('a pod made again with the address of the one before is told of as well', async () => {
    const one = agent()
    await tell(one, 0)
    await tell(one, 1000)
    await client.delete(POD, { gracePeriodSeconds: 0 })
    await runPod()
    pods = await podsInStore()
    expect([await tell(one, 2000), await tell(one, 3000)]).toEqual([1, 0])
    expect(await condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a pod that was going when all were listed leaves nothing to the next of its name', async () => {
    await client.patch(POD, { metadata: { finalizers: ['example.com/wait'] } }, { type: 'merge' })
    await tell(agent(), 0)
    await client.delete(POD, { gracePeriodSeconds: 0 })
    const one = agent()
    await tell(one, 0)
    await client.patch(POD, { metadata: { finalizers: null } }, { type: 'merge' })
    await runPod()
    pods = await podsInStore()
    await tell(one, 1000)
    expect(await condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a pod of both families is the same one whichever comes first', async () => {
    const one = agent()
    await tell(one, 0)
    await runPod('dual', 'fd00::8', '10.1.0.8')
    pods = (await podsInStore()).filter(({ name }) => name === 'dual').map((pod) => ({ ...pod, podIPs: pod.podIPs.toReversed() }))
    await tell(one, 1000)
    expect(await condition({ ...POD, name: 'dual' }, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a condition that somebody has taken away is there again within two hours', async () => {
    const one = agent()
    await tell(one, 0)
    await tell(one, 1000)
    await client.patch(POD, { status: { conditions: [] } }, { type: 'merge', subresource: 'status' })
    await tell(one, 2 * HOUR_MS)
    await tell(one, 2 * HOUR_MS + 1000)
    expect(await condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })
})

describe('events on what is refused', () => {
  const names = ['n1', 'n2']
  const refusal: Refusal = {
    key: 'v1 Service default web',
    object: { apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'web' },
    reason: 'Refused',
    message: 'spec.ports[0].port: must be a port',
    own: false,
  }
  let refusals: readonly Refusal[] = []
  let wall = Date.UTC(2026, 0, 1)
  const agent = (node: string) => new Events({ api: client, node, nodes: () => names, refusals: () => refusals, wall: () => wall })
  /** The server has something to say itself. */
  const told = async (): Promise<readonly ApiObject[]> =>
    await client.list({ ...EVENTS, namespace: 'default' }, { fieldSelector: 'source=netplane-agent' })
  /** Both clocks at once. */
  const at = async (now: number, ...agents: readonly Events[]): Promise<readonly unknown[]> => {
    wall = Date.UTC(2026, 0, 1) + now
    for (const one of agents) await tell(one, now)
    return (await told()).map(({ count, message, source }) => [message, count, isObject(source) && source['host']])
  }

  const makeService = async (): Promise<string | undefined> => {
    const metadata = { namespace: 'default', name: 'web' }
    const made = await client.create(asApiObject({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } }))
    return made.metadata.uid
  }

  beforeEach(async () => {
    refusals = [refusal]
    await makeService()
  })

  /** The node whose turn it is first. */
  function inOrder(): readonly [string, string] {
    return agent('n1').due(0).length === 1 ? ['n1', 'n2'] : ['n2', 'n1']
  }

  test('one node says it of the object as kubectl looks for it, and the other finds it said', async () => {
    const order = inOrder()
    const [first, second] = [agent(order[0]), agent(order[1])]
    const said = [[refusal.message, 1, order[0]]]
    expect(await at(0, first, second)).toEqual(said)
    expect(await at(TURN_MS, first, second)).toEqual(said)
    const [event] = await told()
    const uid = (await client.get(refusal.object)).metadata.uid
    expect(event).toMatchObject({ type: 'Warning', reason: 'Refused', involvedObject: { ...refusal.object, uid } })
  })

  test('the other stands in where the first is down, and the next agent of that node says nothing', async () => {
    const order = inOrder()
    const second = agent(order[1])
    expect(await at(0, second)).toEqual([])
    const said = [[refusal.message, 1, order[1]]]
    expect(await at(TURN_MS, second)).toEqual(said)
    expect(await at(TURN_MS + 1000, agent(order[0]))).toEqual(said)
  })

  test('it is said again, and counted, before the server forgets it; by one', async () => {
    const order = inOrder()
    const [first, second] = [agent(order[0]), agent(order[1])]
    await at(0, first, second)
    await at(TURN_MS, first, second)
    expect(await at(AGAIN_MS - 1000, first, second)).toEqual([[refusal.message, 1, order[0]]])
    expect(second.due(AGAIN_MS + 1000)).toEqual([])
    expect(await at(AGAIN_MS + 1000, first)).toEqual([[refusal.message, 2, order[0]]])
    expect(await at(AGAIN_MS + 1000 + TURN_MS, second)).toEqual([[refusal.message, 2, order[0]]])
  })

  test('what the server has forgotten is said anew', async () => {
    const [node] = inOrder()
    const one = agent(node)
    await at(0, one)
    for (const event of await told()) await client.delete(namedOf(event))
    expect(await at(AGAIN_MS, one)).toEqual([[refusal.message, 1, node]])
  })

  test('what is mended is not said again; when it comes back it is counted', async () => {
    const [node] = inOrder()
    const one = agent(node)
    await at(0, one)
    refusals = []
    expect(await at(AGAIN_MS, one)).toEqual([[refusal.message, 1, node]])
    await at(AGAIN_MS + 1000, one)
    refusals = [refusal]
    expect(await at(AGAIN_MS + 2000, one)).toEqual([[refusal.message, 2, node]])
    refusals = []
    await at(AGAIN_MS + 10_000, one)
    refusals = [refusal]
    expect(await at(AGAIN_MS + 20_000, one)).toEqual([[refusal.message, 3, node]])
  })

  test('an object that is made again as wrong as before is warned of by its own uid', async () => {
    const [node] = inOrder()
    const one = agent(node)
    await at(0, one)
    await client.delete(refusal.object)
    refusals = []
    await at(1000, one)
    const uid = await makeService()
    refusals = [refusal]
    await at(2000, one)
    const uids = (await told()).map(({ involvedObject }) => isObject(involvedObject) && involvedObject['uid'])
    expect(uids).toHaveLength(2)
    expect(uids).toContain(uid)
  })

  test('an object that is gone is not spoken of', async () => {
    await client.delete(refusal.object)
    const [node] = inOrder()
    expect(await at(0, agent(node))).toEqual([])
  })

  test('what concerns the whole cluster is said in the default namespace', async () => {
    refusals = [{ ...refusal, key: 'node', object: NODE, own: true }]
    expect(await at(0, agent('n2'))).toEqual([[refusal.message, 1, 'n2']])
  })
})

describe('ClusterInformation', () => {
  const facts = (node = 'n1', release = '0.1.0', names = ['n1']) =>
    new ClusterFacts({
      api: client,
      node,
      version: release,
      nodes: () => new Map(names.map((name) => [name, { labels: new Map([['kops.k8s.io/instancegroup', 'a']]) }])),
      isReady: () => true,
      newGuid: () => 'guid',
      daemonSet: AGENTS,
    })
  const spec = async (): Promise<unknown> => (await client.get(CLUSTER_INFORMATION))['spec']
  const whole = { clusterGUID: 'guid', clusterType: 'k8s,kops', netplaneVersion: 'v0.1.0', datastoreReady: true }

  test('where its kind is not defined nothing fails, and it is asked for seldom', async () => {
    const one = facts()
    expect([await tell(one, 0), await tell(one, 299_000)]).toEqual([1, 0])
  })

  test('is made, kept as it is, and has the version of who started last', async () => {
    const definitions = loadAll(readFileSync(new URL('../../deploy/crds.yaml', import.meta.url), 'utf8')).map(asApiObject)
    const definition = definitions.find(({ metadata }) => metadata.name.startsWith('clusterinformations.'))
    if (definition === undefined) throw new Error('no definition')
    await client.create(definition)
    const served = (): Promise<true | undefined> =>
      client.list(CLUSTER_INFORMATION).then(
        () => true,
        () => undefined,
      )
    await waitFor(served, { timeoutMs: 30_000, everyMs: 100 })
    const one = facts()
    expect([await tell(one, 0), await tell(one, 60_000), await spec()]).toEqual([1, 1, whole])
    const before = await version(CLUSTER_INFORMATION)
    await tell(facts(), 0)
    expect(await version(CLUSTER_INFORMATION)).toBe(before)
    // an administrator's word, and a newer agent's
    await client.patch(CLUSTER_INFORMATION, { spec: { datastoreReady: false, clusterGUID: 'old' } }, { type: 'merge' })
    await tell(facts('n1', '0.2.0'), 0)
    expect(await spec()).toEqual({ ...whole, clusterGUID: 'old', netplaneVersion: 'v0.2.0', datastoreReady: false })
    await tell(one, 3 * HOUR_MS)
    expect(await spec()).toMatchObject({ netplaneVersion: 'v0.2.0' })
    await client.patch(CLUSTER_INFORMATION, { spec: { clusterType: null } }, { type: 'merge' })
    await tell(one, 6 * HOUR_MS)
    expect(await spec()).toMatchObject({ netplaneVersion: 'v0.2.0', clusterType: 'k8s,kops' })
  })

  test('shows how many nodes have agents that are ready, a minute old at most', async () => {
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    const selector = { matchLabels: { a: 'b' } }
    const { namespace, name } = AGENTS
    await client.create(asApiObject({ ...AGENTS, metadata: { namespace, name }, spec: { selector, template } }))
    const counted = (ready: number, observedGeneration: number) => ({
      status: { desiredNumberScheduled: 3, numberReady: ready, updatedNumberScheduled: 2, observedGeneration },
    })
    const one = facts()
    const toldAt = async (now: number, status: object): Promise<unknown> => {
      await client.patch(AGENTS, status, { type: 'merge', subresource: 'status' })
      await tell(one, now)
      return spec()
    }
    expect(await toldAt(0, counted(1, 1))).toMatchObject({ dataplane: { nodes: 3, ready: 1, updated: 2 } })
    const before = await version(CLUSTER_INFORMATION)
    await tell(one, 60_000)
    expect(await version(CLUSTER_INFORMATION)).toBe(before)
    expect(await toldAt(120_000, counted(3, 1))).toMatchObject({ dataplane: { nodes: 3, ready: 3, updated: 2 } })
    // of a set that is not the present one any more
    expect(await toldAt(180_000, counted(0, 0))).toMatchObject({ dataplane: { nodes: 3, ready: 3, updated: 2 } })
    await client.delete(AGENTS)
  })

  test('one node after the other looks after it', async () => {
    const names = ['n1', 'n2']
    const counts = await Promise.all(names.map((name) => tell(facts(name, '0.1.0', names), 0)))
    expect(counts.sort()).toEqual([0, 1])
    expect(await tell(facts('n3', '0.1.0', names), 0)).toBe(0)
  })
})

test('what is to be told while the server is away is told when it is back', async () => {
  await runPod()
  const pods = await podsInStore()
  const clock = new FakeClock()
  const health = new Health(() => Date.now())
  const wall = (): number => Date.now()
  await using own = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  const outbox = new Outbox({
    ...{ clock, health, log: silentLog },
    subjects: [
      new NodeCondition({ api: own, node: 'n1', unready: () => [], wasReady: false, isKnown: () => true, wall }),
      new PodConditions({
        ...{ api: own, node: 'n1', wall, pods: () => pods, interfacePrefix: () => 'npl' },
        missingOf: () => undefined,
        isReady: () => true,
      }),
    ],
  })
  const reason = (): string | undefined => health.report().conditions.find(({ name }) => name === WRITTEN)?.reason
  await cluster.kill('kube-apiserver')
  await outbox.round(RUNNING)
  expect(reason()).toMatch(/127\.0\.0\.1/)
  await cluster.startServer()
  const told = async (): Promise<true | undefined> => {
    clock.advance(1000)
    await outbox.round(RUNNING)
    return (await condition(POD, PROGRAMMED)) === undefined ? undefined : true
  }
  expect(await waitFor(told, { timeoutMs: 30_000, everyMs: 50 })).toBe(true)
  expect(await condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False' })
  expect(reason()).toBe('')
})

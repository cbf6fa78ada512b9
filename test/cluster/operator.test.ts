// SPDX-License-Identifier: Apache-2.0
/** The operator on a real cluster: from nothing to Available, kept so, and nothing lost whatever happens to nodes, to
 * the API server's address, and to the operator itself; and away again. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { at, listAt, textAt } from '../../lab/raw.ts'
import { lossesOf, underLoad } from '../../lab/traffic/load.ts'
import { Random } from '../../soak/random.ts'
import { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { withinBestOfThree } from '../support/steady/best-of.ts'
import { Asking } from './asking.ts'
import { importImage } from './installed.ts'
import { Namespace } from './namespaces.ts'
import { settledNodeStates } from './operator/node-state.ts'
import { tryHostEndpoints } from './operator/host-endpoints.ts'
import { nft } from './operator/in-the-way.ts'
import * as operator from './operator/installed.ts'
import { allReached, goneAndClean, makePods, pause, seconds } from './operator/outcome.ts'
import { ECHO_PORT, loadOf, served, service, workload } from './operator/traffic.ts'
import { PodPlaces } from './pod-places.ts'
import { HTTP_PORT, podsOf, urlOf, type RunningPod } from './pods.ts'
import { SEED } from '../support/steady/seed.ts'

const NODE = 'daemonset/netplane-node'
const PROOF = 'daemonset/netplane-endpoint-proof'
const IDLE_MS = 20_000
/** So long a removal takes, at least. */
const REMOVAL_MS = 3000

const random = new Random(SEED)
let cluster: Cluster
let namespace: Namespace
/** one on each node; a drain leaves them */
let pods: readonly RunningPod[] = []
let places: PodPlaces
/** of all nodes, before anything of ours was there */
let clean: Readonly<Record<string, readonly string[]>>

beforeAll(async () => {
  cluster = await Cluster.up({ name: 'operator' })
  await importImage(cluster)
  clean = await settledNodeStates(cluster)
}, 15 * 60_000)

afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

async function rolledOut(): Promise<void> {
  await cluster.kubectl(['rollout', 'status', NODE, '-n', operator.SYSTEM, '--timeout=120s'], { timeoutMs: 130_000 })
}

/** The address that the agents have by their DaemonSet. */
async function endpointOf(): Promise<string | undefined> {
  const text = JSON.stringify(await cluster.get(NODE, '-n', operator.SYSTEM))
  return /"name":"CLUSTER_SERVICE_HOST","value":"([^"]*)"/.exec(text)?.[1]
}

async function isThere(object: string): Promise<boolean> {
  return (await cluster.tryKubectl(['get', object, '-n', operator.SYSTEM])).status === 0
}

test('an empty cluster is Available within a minute of the first command, its nodes looked at first', async () => {
  const began = performance.now()
  await operator.installOperator(cluster)
  await operator.applyInstallation(cluster)
  await expect.poll(() => operator.madeNames(cluster), { timeout: 60_000 }).toContain('DaemonSet netplane-system/netplane-preflight')
  const asked = performance.now()
  await expect.poll(() => isThere(NODE), { timeout: 60_000 }).toBe(true)
  const preflight = seconds(asked)
  await operator.available(cluster)
  const took = performance.now() - began
  console.log(`operator: Available ${seconds(began)} after the first command, ${preflight} of it for the preflight`)
  expect(took).toBeLessThan(60_000)
  const since = String(at(await operator.condition(cluster, 'services', 'Available'), 'lastTransitionTime'))
  for (const node of listAt(await cluster.get('nodes'), 'items')) {
    const ready = listAt(node, 'status.conditions').find((one) => textAt(one, 'type') === 'Ready')
    expect(ready).toMatchObject({ status: 'True' })
    expect(String(at(ready, 'lastTransitionTime')) <= since, `ready at ${since}`).toBe(true)
  }
  expect(await operator.condition(cluster, 'preflight', 'Available')).toMatchObject({ status: 'True', reason: 'Passed' })
  await expect
    .poll(() => operator.madeNames(cluster), { timeout: 10_000 })
    .not.toContainEqual(expect.stringContaining('netplane-preflight'))
})

test('kubectl get netplanestatus has what an administrator waits for', async () => {
  const [head = '', ...rows] = (await cluster.kubectl(['get', 'netplanestatus'])).trim().split('\n')
  expect(head.split(/\s+/).slice(0, 5)).toEqual(['NAME', 'AVAILABLE', 'PROGRESSING', 'DEGRADED', 'SINCE'])
  for (const component of ['controllers', 'network', 'preflight'])
    expect(rows.find((row) => row.startsWith(`${component} `))).toMatch(/^\w+ +True +False +False +\d+[sm]/)
})

test('a pod of each node reaches the other, and both by their service', async () => {
  namespace = await Namespace.make(cluster, 'traffic')
  pods = await makePods(cluster, namespace.name)
  await allReached(cluster, namespace.name, pods)
  places = await PodPlaces.of(cluster, pods)
  await places.serve(ECHO_PORT)
})

test('host endpoints close ports of the nodes themselves, by hand and automatic; nothing of the operator is written meanwhile [once]', async () => {
  const before = await operator.versions(cluster)
  const began = performance.now()
  await tryHostEndpoints(cluster)
  await pause(IDLE_MS - (performance.now() - began))
  expect(await operator.versions(cluster)).toEqual(before)
})

test('kubectl diff finds nothing between the files and the cluster, and nothing was refused', async () => {
  const [definitions = '', own = '', resources = ''] = operator.FILES
  for (const file of [definitions, own]) expect(await cluster.kubectl(['diff', '--server-side', '-f', file])).toBe('')
  expect(await cluster.kubectl(['diff', '-f', resources])).toBe('')
  // with the rights that the file gives it
  expect(await cluster.kubectl(['logs', `deployment/${operator.OPERATOR}`, '-n', operator.OPERATOR])).not.toMatch(/forbidden/i)
})

test('what another client changes of ours is put back within 2 s', async () => {
  const strategy = 'spec.updateStrategy.rollingUpdate.maxUnavailable'
  const edits: readonly (readonly [object: readonly string[], patch: object, path: string])[] = [
    [[NODE, '-n', operator.SYSTEM], { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } } }, strategy],
    [['deployment/netplane-controllers', '-n', operator.SYSTEM], { spec: { replicas: 2 } }, 'spec.replicas'],
    [['clusterrole', 'netplane-node'], { rules: [] }, 'rules'],
  ]
  for (const [object, patch, path] of edits) {
    const before = at(await cluster.get(...object), path)
    const back = async (): Promise<unknown> => at(await cluster.get(...object), path)
    await withinBestOfThree(2000, async () => {
      await cluster.kubectl(['patch', ...object, '--type=merge', '-p', JSON.stringify(patch)])
      const began = performance.now()
      await expect.poll(back, { interval: 50, message: object[0] ?? '' }).toEqual(before)
      return performance.now() - began
    })
  }
})

test('an endpoint is used once both nodes have reached it, and agents roll; the one before stays, and nothing is lost', async () => {
  const degraded = (): Promise<unknown> => operator.condition(cluster, 'network', 'Degraded')
  const { host, port } = cluster.endpoint
  const { gateway } = cluster.plane
  const agents = at(await cluster.get(NODE, '-n', operator.SYSTEM), 'spec')
  const result = await underLoad(places, await loadOf(cluster, namespace.name, pods), async () => {
    await operator.putEndpoint(cluster, 'https://nowhere')
    await expect.poll(degraded).toMatchObject({ status: 'True', reason: 'EndpointInvalid' })
    // a new one has nothing but the service's address, which we serve
    await (
      await operator.killerOf(cluster)
    )()
    await operator.freeLease(cluster)
    await nft(
      cluster,
      'node/b',
      `table ip cut { chain out { type filter hook output priority 0; ip daddr ${gateway} tcp dport ${port} drop; }; }`,
    )
    await operator.putEndpoint(cluster, gateway)
    const why = `agents ask the API server at ${host}:${port} until every node has reached it at ${gateway}:${port}: b: ${gateway}:${port} does not answer`
    await expect
      .poll(degraded, { timeout: 60_000 })
      .toMatchObject({ status: 'True', reason: 'EndpointUnproven', message: expect.stringContaining(why) as unknown })
    expect(at(await cluster.get(NODE, '-n', operator.SYSTEM), 'spec')).toEqual(agents)
    expect(await operator.condition(cluster, 'network', 'Available')).toMatchObject({ status: 'True' })
    await nft(cluster, 'node/b', 'delete table ip cut')
    const open = performance.now()
    await expect.poll(endpointOf, { timeout: 60_000, interval: 100 }).toBe(gateway)
    console.log(`operator: an endpoint is used ${seconds(open)} after the last node can reach it`)
    await rolledOut()
  })
  expect(lossesOf(result)).toEqual({ lost: 0, refused: 0 })
  await expect.poll(degraded, { timeout: 30_000 }).toMatchObject({ status: 'False' })
  await expect.poll(() => isThere(PROOF)).toBe(false)
})

test('every node is drained in turn, and no connection is lost; the operator goes on on the other', async () => {
  const app = 'moving'
  // asked until no node sends it a new connection any more
  const container = { lifecycle: { preStop: { sleep: { seconds: 5 } } } }
  await cluster.apply(
    workload({ kind: 'Deployment', namespace: namespace.name, app, container, spec: { replicas: 2 } }),
    service(namespace.name, app, [{ name: 'http', port: 80, targetPort: HTTP_PORT }]),
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { namespace: namespace.name, name: app },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app } } },
    },
  )
  await podsOf(cluster, namespace.name, { app, count: 2 })
  await operator.available(cluster)
  const { addresses } = await served(cluster, { namespace: namespace.name, app, port: 'http' })
  const before = await operator.versions(cluster)
  await using asking = new Asking(places, pods[0]?.name ?? '', urlOf(addresses[0] ?? '', 80))
  await asking.more(20)
  const result = await underLoad(places, await loadOf(cluster, namespace.name, pods), async () => {
    for (const node of cluster.nodes) {
      const line = ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=90s']
      await cluster.kubectl(line, { timeoutMs: 100_000 })
      const pod = await operator.operatorPod(cluster)
      expect(pod.node).not.toBe(node)
      await expect.poll(() => operator.leaseHolder(cluster), { timeout: 30_000 }).toMatch(new RegExp(`^${pod.node}_`))
      await podsOf(cluster, namespace.name, { app, count: 2 })
      await cluster.kubectl(['uncordon', node])
    }
  })
  await asking.more(20)
  expect({ ...lossesOf(result), unanswered: asking.lost }).toEqual({ lost: 0, refused: 0, unanswered: [] })
  expect(withoutMoved(await operator.versions(cluster))).toEqual(withoutMoved(before))
})

/** The pod of the controllers moves with a drain, as others do, and its status tells of it. */
function withoutMoved(versions: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const moved = ['Deployment netplane-system/netplane-controllers', 'NetplaneStatus controllers']
  return new Map([...versions].filter(([name]) => !moved.includes(name)))
}

test('a deleted Installation takes all of it off nodes and cluster, also when the operator is killed meanwhile; what is written stays', async () => {
  const metadata = { name: 'kept' }
  await cluster.apply(
    { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata, spec: { cidr: '192.0.2.0/24', disabled: true } },
    { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata, spec: { selector: "no == 'such'" } },
  )
  const kill = await operator.killerOf(cluster)
  const began = performance.now()
  const gone = operator.deleteInstallation(cluster)
  const after = random.below(REMOVAL_MS)
  await pause(after)
  await kill()
  await operator.freeLease(cluster)
  await gone
  console.log(`operator: SEED=${SEED}: removed in ${seconds(began)}, killed after ${after} ms`)
  await goneAndClean(cluster, clean)
  await cluster.kubectl(['get', 'ippool.netplane.io/kept', 'globalnetworkpolicy.netplane.io/kept', 'crd/ippools.netplane.io'])
})

// SPDX-License-Identifier: Apache-2.0
/** Servers behind services of every kind, and the ways in which pods, nodes and clients outside reach them.
 * Layer: test. */
import { endpointText, type Endpoint } from '../../../lab/tools/address.ts'
import type { Way } from '../../../lab/traffic/accounts.ts'
import { startRequestsToEach, type Spawner } from '../../../lab/traffic/traffic.ts'
import { waitFor } from '../../../lab/wait.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { PodPlaces } from '../pod-places.ts'
import { runPods, type RunningPod } from '../pods.ts'
import { ECHO_PORT, served } from './traffic.ts'

const NODES = ['a', 'b'] as const
type Node = (typeof NODES)[number]
const ANSWERED_MS = 20_000
const OTHER = { a: 'b', b: 'a' } as const

export interface World {
  readonly places: Spawner
  readonly ways: readonly Way[]
}

/** A server and a client on each node; their services, of all families of the cluster: of both servers, of one alone,
 * and of both where a node sends to its own. */
export async function makeWorld(cluster: Cluster, namespace: string): Promise<World> {
  const specs = NODES.flatMap((node) => [
    { name: `server-${node}`, node, labels: { app: 'server', on: node } },
    { name: `client-${node}`, node },
  ])
  const pods = await runPods(cluster, namespace, specs)
  const pod = (name: string): RunningPod => {
    const found = pods.find((one) => one.name === name)
    if (found === undefined) throw new Error(`no pod ${name}`)
    return found
  }
  const servers = { a: pod('server-a'), b: pod('server-b') }
  await (await PodPlaces.of(cluster, [servers.a, servers.b])).serve(ECHO_PORT)
  const ipFamilyPolicy = cluster.addresses.serviceCidrs.length > 1 ? 'RequireDualStack' : 'SingleStack'
  const made = (name: string, spec: object): object => nodePort(namespace, name, { ipFamilyPolicy, ...spec })
  await cluster.apply(
    made('both', { selector: { app: 'server' } }),
    made('local', { type: 'LoadBalancer', selector: { app: 'server' }, externalTrafficPolicy: 'Local' }),
    ...NODES.map((node) => made(`on-${node}`, { selector: { app: 'server', on: node } })),
  )
  const world = { places: placesOf(cluster, await PodPlaces.of(cluster, pods)), ways: await waysOf(cluster, namespace, servers) }
  await allAnswered(world)
  return world
}

/** Throws with those that are not answered in time. */
export async function allAnswered({ places, ways }: World): Promise<void> {
  let unanswered: readonly string[] = []
  const answered = await waitFor(
    async () => {
      unanswered = (await Promise.all([...Map.groupBy(ways, ({ from }) => from).values()].map((own) => unansweredOf(places, own)))).flat()
      return unanswered.length === 0 ? true : undefined
    },
    { timeoutMs: ANSWERED_MS, everyMs: 200 },
  )
  if (answered !== true) throw new Error(`no answer: ${unanswered.join(', ')}`)
}

/** Of the ways from one place. */
async function unansweredOf(places: Spawner, ways: readonly Way[]): Promise<readonly string[]> {
  const from = ways[0]?.from ?? ''
  const to = ways.flatMap((way) => way.to)
  const { each } = await startRequestsToEach(places, { from, to }).result
  return to.flatMap((end, index) => (each[index]?.ok === 1 ? [] : [`${from} to ${endpointText(end)}`]))
}

async function waysOf(cluster: Cluster, namespace: string, servers: Readonly<Record<Node, RunningPod>>): Promise<readonly Way[]> {
  const find = async (app: string) => await served(cluster, { namespace, app, port: 'tcp' })
  const [both, local, onA, onB] = await Promise.all(['both', 'local', 'on-a', 'on-b'].map(find))
  if (both === undefined || local === undefined || onA === undefined || onB === undefined) throw new Error('there are four services')
  const on = { a: onA.nodePort, b: onB.nodePort }
  const entry = (node: Node, port: number): readonly Endpoint[] => ends(addressesOfNode(cluster, node), port)
  return [
    ...NODES.flatMap((node) => [
      { kind: 'pod to pod', from: `client-${node}`, to: ends(servers[OTHER[node]].addresses, ECHO_PORT) },
      { kind: 'pod to cluster address', from: `client-${node}`, to: ends(both.addresses, ECHO_PORT) },
      { kind: 'pod to node port', from: `client-${node}`, to: entry(node, on[OTHER[node]]) },
      { kind: 'node to cluster address', from: `node/${node}`, to: ends(both.addresses, ECHO_PORT) },
      { kind: 'node to its node port', from: `node/${node}`, to: entry(node, on[OTHER[node]]) },
      { kind: 'node port, server on the node', from: 'client', to: entry(node, on[node]) },
      { kind: 'node port, server on another', from: 'client', to: entry(node, on[OTHER[node]]) },
      { kind: 'node port, local', from: 'client', to: entry(node, local.nodePort) },
    ]),
  ]
}

function ends(addresses: readonly string[], port: number): readonly Endpoint[] {
  return addresses.flatMap((address) => (['tcp', 'udp'] as const).map((proto) => ({ proto, address, port })))
}

function addressesOfNode(cluster: Cluster, name: Node): readonly string[] {
  const node = cluster.lab.topology.nodes.find((one) => one.name === name)
  return (node?.addresses ?? []).map((address) => address.split('/')[0] ?? '')
}

/** Pods by their names, beside the places of the lab. */
function placesOf(cluster: Cluster, pods: PodPlaces): Spawner {
  return {
    spawn: (place, command) => (/^(client$|node\/)/.test(place) ? cluster.lab.spawn(place, command) : pods.spawn(place, command)),
  }
}

/** TCP and UDP at one port. */
function nodePort(namespace: string, name: string, spec: object): object {
  const ports = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: ECHO_PORT }))
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name },
    spec: { type: 'NodePort', ports, ...spec },
  }
}

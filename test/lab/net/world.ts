// SPDX-License-Identifier: Apache-2.0
/** A cluster with a router in it, pools, and questions to ask there. Layer: test. */
import { once } from 'node:events'
import { parseMetrics } from '../../../demo/metrics.ts'
import { RequestAgent } from '../../../lab/traffic/request-agent.ts'
import { Lab } from '../../../lab/lab.ts'
import type { UpOptions } from '../../../lab/options.ts'
import { toolCommand } from '../../../lab/paths.ts'
import { endpointText, type Endpoint } from '../../../lab/tools/address.ts'
import type { Outcome } from '../../../lab/tools/protocol.ts'
import { Manifests } from '../cluster.ts'
import { programCommand } from '../../../testkit/base/program.ts'

export const NODES = ['a', 'b', 'c'] as const
export type NodeName = (typeof NODES)[number]
export const PODS = ['a-1', 'a-2', 'b-1', 'c-1'] as const
export type PodName = (typeof PODS)[number]
export const FAMILIES = [4, 6] as const
export type Family = (typeof FAMILIES)[number]
export const PROTOS = ['tcp', 'udp'] as const
export const POD_PORT = 8080
export const NODE_PORT = 30080
const METRICS_PORT = 9091

/** a and b are neighbours, c is behind the router. */
export function nodeAddress(node: NodeName, family: Family): string {
  const [subnet, last] = { a: [1, 11], b: [1, 12], c: [2, 11] }[node]
  return family === 4 ? `172.28.${subnet}.${last}` : `fd00:28:${subnet}::${last}`
}

/** The router's, on the node's side. */
export function gateway(node: NodeName, family: Family): string {
  return nodeAddress(node, family).replace(/1[12]$/, '1')
}

export function podAddress(pod: PodName, family: Family): string {
  const [node = '', last = ''] = pod.split('-')
  const range = NODES.findIndex((one) => one === node) + 1
  return family === 4 ? `10.28.${range}.${last}` : `fd00:2800:${range}::${last}`
}

export function serviceAddress(family: Family): string {
  return family === 4 ? '10.96.28.1' : 'fd00:96:28::1'
}

/** Beyond the router, in no pool. */
export const FAR = { 4: '198.51.100.10', 6: '2001:db8:6464::10' } as const
export const FAR_PORT = 7000

export interface Wishes {
  /** of FelixConfiguration `default` */
  readonly felix?: object
  /** of both pools; undefined: there are none */
  readonly pools?: object
  /** ready endpoints of the service */
  readonly endpoints?: readonly PodName[]
  /** of the service */
  readonly service?: object
  /** where the endpoints answer; default POD_PORT */
  readonly targetPort?: number
  readonly annotations?: Readonly<Record<string, string>>
  /** pods whose manifests are gone */
  readonly without?: readonly PodName[]
  /** families in which these nodes have an ExternalIP and no InternalIP */
  readonly external?: Readonly<Partial<Record<NodeName, readonly Family[]>>>
  /** nodes whose addresses are others than the lab gave them */
  readonly moved?: Readonly<Partial<Record<NodeName, (family: Family) => string>>>
  /** services beside it */
  readonly others?: readonly ServiceWish[]
  /** whole objects */
  readonly more?: readonly object[]
}

export interface ServiceWish {
  readonly name: string
  readonly address: (family: Family) => string
  readonly endpoints: readonly PodName[]
  /** as in a slice made by hand: whose endpoints are on no node */
  readonly nodeless?: boolean
  readonly targetPort?: number
  readonly nodePort?: number
  readonly annotations?: Readonly<Record<string, string>> | undefined
  /** more of `spec` */
  readonly spec?: object | undefined
  readonly status?: object
}

function objects({
  felix,
  pools,
  endpoints = [],
  service,
  targetPort = POD_PORT,
  annotations,
  without = [],
  external = {},
  moved = {},
  others = [],
  more = [],
}: Wishes): object[] {
  const spec = { type: 'NodePort', ...service }
  const web: ServiceWish = { name: 'web', address: serviceAddress, endpoints, targetPort, nodePort: NODE_PORT, annotations, spec }
  return [
    ...NODES.flatMap((node) => [nodeObject(node, { external: external[node] ?? [], moved: moved[node] }), networkObject(node)]),
    ...PODS.filter((pod) => !without.includes(pod)).map(podObject),
    { ...kind('netplane.io/v3', 'FelixConfiguration', { name: 'default' }), spec: { ...METRICS, ...felix } },
    ...(pools === undefined ? [] : FAMILIES.map((family) => poolObject(family, pools))),
    ...[web, ...others].flatMap(serviceObjects),
    ...more,
  ]
}

const METRICS = { prometheusMetricsEnabled: true, prometheusMetricsPort: METRICS_PORT }

function kind(apiVersion: string, name: string, metadata: object): object {
  return { apiVersion, kind: name, metadata }
}

interface NodeWish {
  readonly external: readonly Family[]
  readonly moved: ((family: Family) => string) | undefined
}

function nodeObject(name: NodeName, { external, moved = (family) => nodeAddress(name, family) }: NodeWish): object {
  const typeOf = (family: Family): string => (external.includes(family) ? 'ExternalIP' : 'InternalIP')
  const range = NODES.indexOf(name) + 1
  return {
    ...kind('v1', 'Node', { name }),
    spec: { podCIDRs: [`10.28.${range}.0/24`, `fd00:2800:${range}::/64`] },
    status: { addresses: FAMILIES.map((family) => ({ type: typeOf(family), address: moved(family) })) },
  }
}

/** Manifests say what agents would. */
function networkObject(name: NodeName): object {
  const subnets = FAMILIES.map((family) => nodeAddress(name, family).replace(/\d+$/, family === 4 ? '0/24' : '/64'))
  return { ...kind('netplane.io/v3', 'NodeNetwork', { name }), spec: { subnets } }
}

function podObject(name: PodName): object {
  const ports = ['TCP', 'UDP'].map((protocol) => ({ containerPort: POD_PORT, protocol }))
  return {
    ...kind('v1', 'Pod', { name, namespace: 'default' }),
    spec: { nodeName: name[0], containers: [{ name: 'main', ports }] },
    status: { phase: 'Running', podIPs: FAMILIES.map((family) => ({ ip: podAddress(name, family) })) },
  }
}

function poolObject(family: Family, spec: object): object {
  const cidr = family === 4 ? '10.28.0.0/16' : 'fd00:2800::/32'
  return { ...kind('netplane.io/v3', 'IPPool', { name: `pods-v${family}` }), spec: { cidr, ...spec } }
}

/** Port 80 by both protocols, in both families. */
function serviceObjects(wish: ServiceWish): object[] {
  const { name, annotations, targetPort = POD_PORT, nodePort, status } = wish
  const ports = PROTOS.map((proto) => ({ name: proto, protocol: proto.toUpperCase(), port: 80, targetPort, nodePort }))
  const clusterIPs = FAMILIES.map(wish.address)
  const spec = { clusterIP: clusterIPs[0], clusterIPs, ipFamilies: ['IPv4', 'IPv6'], ports, ...wish.spec }
  const service = { ...kind('v1', 'Service', { name, namespace: 'default', annotations }), spec, status }
  return [service, ...FAMILIES.map((family) => sliceObject(wish, family))]
}

function sliceObject({ name, endpoints, nodeless, targetPort = POD_PORT }: ServiceWish, family: Family): object {
  return {
    ...kind('discovery.k8s.io/v1', 'EndpointSlice', {
      name: `${name}-v${family}`,
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': name },
    }),
    addressType: `IPv${family}`,
    ports: PROTOS.map((proto) => ({ name: proto, protocol: proto.toUpperCase(), port: targetPort })),
    endpoints: endpoints.map((pod) => ({
      addresses: [podAddress(pod, family)],
      nodeName: nodeless === true ? undefined : pod[0],
      conditions: { ready: true },
      targetRef: { kind: 'Pod', namespace: 'default', name: pod },
    })),
  }
}

export interface AskOptions {
  readonly count?: number
  readonly timeoutMs?: number
  readonly payload?: number
  readonly reply?: number
  readonly localPort?: number
}

/** Nothing is built before `up`. */
export class World {
  readonly #name: string
  readonly #manifests = new Manifests([])
  readonly #askers = new Map<string, RequestAgent>()
  #lab: Lab | undefined

  constructor(name: string) {
    this.#name = name
  }

  async up(wishes: Wishes, options: UpOptions = {}): Promise<void> {
    this.put(wishes)
    const agentCommand = programCommand('agent')
    this.#lab = await Lab.up({ name: this.#name, resources: this.#manifests.dir, agentCommand, ...options })
  }

  /** What the client has in the nodes' first subnet. */
  client(family: Family): string {
    const address = this.lab.topology.client.addresses.find((one) => one.includes(':') === (family === 6))
    return address?.split('/')[0] ?? ''
  }

  /** Replaces all manifests. */
  put(wishes: Wishes): void {
    this.#manifests.write(objects(wishes))
  }

  get lab(): Lab {
    if (this.#lab === undefined) throw new Error(`${this.#name} is not up`)
    return this.#lab
  }

  async down(): Promise<void> {
    for (const asker of this.#askers.values()) asker.close()
    await this.#lab?.down()
    this.#manifests[Symbol.dispose]()
  }

  async order(place: string, order: Parameters<RequestAgent['order']>[0]): Promise<readonly Outcome[]> {
    const asker = this.#askers.get(place) ?? new RequestAgent(this.lab, place)
    this.#askers.set(place, asker)
    return await asker.order(order)
  }

  async outcomes(from: string, to: Endpoint, options: AskOptions = {}): Promise<readonly Outcome[]> {
    return await this.order(from, { do: 'ask', to: endpointText(to), count: 4, timeoutMs: 1000, payload: 64, reply: 0, ...options })
  }

  /** What came back, "pod < peer's address" or an error's code, each once and sorted. */
  async ask(from: string, to: Endpoint, options: AskOptions = {}): Promise<string[]> {
    return [...new Set((await this.outcomes(from, to, options)).map(outcomeText))].sort()
  }

  /** An echo server named as the place, on this port and the next, until the lab goes. */
  async serve(place: string, port: number): Promise<void> {
    const listen = [port, port + 1].flatMap((one) => PROTOS.flatMap((proto) => ['--listen', `${proto}:${one}`]))
    const server = this.lab.spawn(place, [...toolCommand('echo'), '--name', place, ...listen])
    if (server.stdout !== null) await once(server.stdout, 'data')
  }

  async ping(from: string, to: string): Promise<boolean> {
    return (await this.lab.run(from, ['ping', '-n', '-c', '3', '-i', '0.2', '-W', '2', to])).status === 0
  }

  /** The value of a line of the node's metrics; 0 when there is none. */
  async metric(node: NodeName, line: string): Promise<number> {
    const page = await this.lab.agents.get({ node, port: METRICS_PORT, path: '/metrics' })
    return parseMetrics(page.text).get(line) ?? 0
  }

  async drops(node: NodeName, reason: string): Promise<number> {
    return await this.metric(node, `netplane_drops_total{reason="${reason}"}`)
  }

  /** `ip` in a place, as text. */
  async ip(place: string, ...args: readonly string[]): Promise<string> {
    return await this.lab.mustRun(place, ['ip', ...args])
  }
}

function outcomeText(outcome: Outcome): string {
  if ('failed' in outcome) return outcome.failed
  if (!('pod' in outcome)) return 'other'
  return `${outcome.pod} < ${outcome.peer.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')}`
}

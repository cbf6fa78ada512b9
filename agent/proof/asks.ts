// SPDX-License-Identifier: Apache-2.0
/** Which services a node asks to find out whether they are served: of each type that the cluster has a few.
 * Layer: agent/proof (pure). */
import { hostPort, isV4, isWithin, formatAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { nodeAddress } from '#lib/model/node.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Family, Service, ServicePort } from '#lib/model/service.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { chooseEndpoints } from '../compile/services/endpoints.ts'

export interface Place {
  readonly addr: Addr
  readonly port: number
}

export interface Ask extends Place {
  /** "shop/db" */
  readonly service: string
  /** a TCP connection, a question to a name server, or a datagram that no application gets: there is no question that
   * each would answer, and what an application makes of an unknown datagram is not known */
  readonly how: 'connect' | 'name' | 'datagram'
  readonly isNodePort: boolean
  /** for which a client keeps its endpoint; undefined: it does not */
  readonly affinitySeconds: number | undefined
  /** one of these is to answer */
  readonly endpoints: readonly Place[]
}

export interface AsksInput {
  readonly snapshot: Snapshot
  /** this node's name */
  readonly node: string
  /** service addresses that are not ours to serve */
  readonly excluded: readonly Cidr[]
}

/** Each type is asked of so many services. */
const OF_TYPE = 2
const FIRST = 'default/kubernetes'
const NAME_PORT = 53

/** "Service shop/db, TCP 10.96.0.9:80" */
export function askText(ask: Ask): string {
  return `Service ${ask.service}, ${ask.how === 'connect' ? 'TCP' : 'UDP'} ${placeText(ask)}`
}

/** "192.0.2.1:30080" */
export function placeText({ addr, port }: Place): string {
  return hostPort(formatAddr(addr), port)
}

export function isSamePlace(a: Place, b: Place): boolean {
  return a.addr === b.addr && a.port === b.port
}

/** Of these, what a process of the node is to ask: its datagram would reach the application. */
export function asksOfNode(asks: readonly Ask[]): readonly Ask[] {
  return asks.filter(({ how }) => how !== 'datagram')
}

/** Of these, what a pod is to ask. Rules judge its packets to node ports as they are asked for, and those to cluster
 * addresses as their endpoints': where there are rules, a node port may be refused that no program of ours has lost. */
export function asksOfPod(asks: readonly Ask[], { isRuled }: { readonly isRuled: boolean }): readonly Ask[] {
  return isRuled ? asks.filter(({ isNodePort }) => !isNodePort) : asks
}

/** What has an endpoint that could answer clients on this node, default/kubernetes first. */
export function asksOf(input: AsksInput): readonly Ask[] {
  const services = [...input.snapshot.services.values()].filter(({ notServed }) => notServed === undefined)
  const byName = services.sort((a, b) => rank(a) - rank(b) || compareText(nameKey(a), nameKey(b)))
  const ofType = new Map<string, Ask[]>()
  for (const service of byName)
    for (const [type, ask] of asksOfService(service, input)) {
      const asks = ofType.get(type) ?? []
      if (asks.length < OF_TYPE) ofType.set(type, [...asks, ask])
    }
  return [...ofType.values()].flat()
}

/** Those of an ask by now; none: nothing is to be asked there any more. */
export function endpointsNow(ask: Ask, input: AsksInput): readonly Place[] {
  const service = input.snapshot.services.get(ask.service)
  if (service === undefined || service.notServed !== undefined) return []
  const now = asksOfService(service, input).find(([, one]) => one.how === ask.how && isSamePlace(one, ask))
  return now?.[1].endpoints ?? []
}

function asksOfService(service: Service, input: AsksInput): readonly (readonly [string, Ask])[] {
  return service.families.flatMap((family) => service.ports.flatMap((port) => asksOfPort({ service, family, port }, input)))
}

/** Cluster addresses among them. */
export function askedAddresses(input: AsksInput): readonly Addr[] {
  return asksOf(input).flatMap(({ isNodePort, addr }) => (isNodePort ? [] : [addr]))
}

function rank(service: Service): number {
  return nameKey(service) === FIRST ? 0 : 1
}

interface Asked {
  readonly service: Service
  readonly family: Family
  readonly port: ServicePort
}

/** By type: "cluster IPv4 connect affinity". */
function asksOfPort(asked: Asked, input: AsksInput): readonly (readonly [string, Ask])[] {
  const { service, family, port } = asked
  const { cluster, local } = targetsOf(asked, input)
  const self = input.snapshot.nodes.get(input.node)
  const own = self && nodeAddress(self, family === 'IPv4')
  const addresses = service.clusterIPs.filter((addr) => isV4(addr) === (family === 'IPv4') && !isWithin(input.excluded, addr))
  const endpoints = service.internalTrafficPolicy === 'Local' ? local : cluster
  const atCluster = { type: 'cluster', isNodePort: false, endpoints }
  // for clients on the node, whatever its policy
  const atNode = { type: `node-port ${service.externalTrafficPolicy}`, isNodePort: true, endpoints: cluster }
  return [
    ...addresses.flatMap((addr) => askAt(asked, { ...atCluster, addr, port: port.port }, input)),
    ...(port.nodePort === undefined || own === undefined ? [] : askAt(asked, { ...atNode, addr: own, port: port.nodePort }, input)),
  ]
}

type At = Pick<Ask, 'addr' | 'port' | 'isNodePort' | 'endpoints'> & { readonly type: string }

/** None where nothing could answer. */
function askAt({ service, family, port }: Asked, { type, ...at }: At, input: AsksInput): readonly (readonly [string, Ask])[] {
  const how = port.protocol === 'TCP' ? 'connect' : port.port === NAME_PORT ? 'name' : 'datagram'
  if (at.endpoints.length === 0 || (how === 'datagram' && hasOwn(at.endpoints, input))) return []
  const { affinitySeconds } = service
  const words = [type, family, how, ...(affinitySeconds === undefined ? [] : ['affinity'])]
  return [[words.join(' '), { ...at, service: nameKey(service), how, affinitySeconds }]]
}

/** One is reached at the node itself: no hop is on the way there that would end a datagram. */
function hasOwn(endpoints: readonly Place[], { snapshot, node }: AsksInput): boolean {
  const interfaces = snapshot.nodeNetworks.get(node)?.interfaces ?? []
  const own = [...(snapshot.nodes.get(node)?.addresses ?? []), ...interfaces.flatMap(({ addresses }) => addresses)]
  return endpoints.some(({ addr }) => own.includes(addr))
}

function targetsOf({ service, family, port }: Asked, { snapshot, node }: AsksInput) {
  const slices = snapshot.slicesOf(nameKey(service))
  const { cluster, local } = chooseEndpoints({ service, port, family, slices }, { node, zone: undefined })
  const placesOf = (targets: readonly Place[]): readonly Place[] => targets.map(({ addr, port: to }) => ({ addr, port: to }))
  return { cluster: placesOf(cluster), local: placesOf(local) }
}

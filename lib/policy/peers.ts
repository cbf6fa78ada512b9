// SPDX-License-Identifier: Apache-2.0
/** What is behind an address: looked up by walking everything, so that it is obviously right. Layer: lib/policy
 * (pure). */
import { isWithin, protocolNumber } from '../base/ip.ts'
import type { Addr } from '../base/ip.ts'
import { hostEndpointLabels, networkSetLabels, podLabels } from '../model/effective-labels.ts'
import type { Labels } from '../model/labels.ts'
import type { EndpointSlice } from '../model/endpoint-slice.ts'
import { hasOwnAddresses } from '../model/pod.ts'
import type { NamedPort } from '../model/policy.ts'
import type { Snapshot } from '../model/snapshot.ts'

/** The part of a snapshot that policy depends on. */
export type PolicyWorld = Pick<
  Snapshot,
  'pods' | 'namespaces' | 'nodes' | 'serviceAccounts' | 'policies' | 'tiers' | 'networkSets' | 'profiles' | 'hostEndpoints' | 'allSlicesOf'
>

/** What rules ask of an address. */
export interface Peers {
  /** effective labels of each endpoint and network set that has it */
  labels(addr: Addr): readonly Labels[]
  /** of each node that has it */
  nodes(addr: Addr): readonly Labels[]
  /** of the pods and host endpoints that have it and are meant by their own labels: being in a network set does not
   * count */
  ports(addr: Addr, isMeant: (labels: Labels) => boolean): readonly NamedPort[]
  /** "namespace/name"; without a port any port will do */
  isEndpointOf(service: string, addr: Addr, port?: { readonly protocol: number; readonly port: number }): boolean
}

interface Known {
  readonly labels: Labels
  readonly ports: readonly NamedPort[]
}

export function peersOf(world: PolicyWorld): Peers {
  const endpoints = new Map<Addr, Known[]>()
  const nodes = new Map<Addr, Labels[]>()
  for (const pod of world.pods.values()) {
    if (!hasOwnAddresses(pod)) continue
    const known = { labels: podLabels(pod, world), ports: pod.ports }
    for (const addr of pod.podIPs) put(endpoints, addr, known)
  }
  for (const endpoint of world.hostEndpoints.values()) {
    const known = { labels: hostEndpointLabels(endpoint, world), ports: endpoint.ports }
    for (const addr of endpoint.expectedIPs) put(endpoints, addr, known)
  }
  for (const node of world.nodes.values()) for (const addr of node.addresses) put(nodes, addr, node.labels)
  const sets = [...world.networkSets.values()].map((set) => ({ labels: networkSetLabels(set, world), nets: set.nets }))
  const known = new Map<Addr, readonly Labels[]>()
  const labels = (addr: Addr): readonly Labels[] => [
    ...(endpoints.get(addr) ?? []).map((one) => one.labels),
    ...sets.filter(({ nets }) => isWithin(nets, addr)).map((set) => set.labels),
  ]
  return {
    // every rule asks
    labels: (addr) => known.get(addr) ?? remembered(known, addr, labels(addr)),
    nodes: (addr) => nodes.get(addr) ?? [],
    ports: (addr, isMeant) => (endpoints.get(addr) ?? []).flatMap((one) => (isMeant(one.labels) ? one.ports : [])),
    isEndpointOf: endpointFinder(world),
  }
}

/** For as long as no slice changes. */
export function endpointFinder({ allSlicesOf }: Pick<PolicyWorld, 'allSlicesOf'>): Peers['isEndpointOf'] {
  const services = new Map<string, PortsByAddr>()
  return (service, addr, port) => {
    const byAddr = services.get(service) ?? remembered(services, service, portsByAddr(allSlicesOf(service)))
    const slices = byAddr.get(addr) ?? []
    return slices.some((ports) => port === undefined || ports.has(`${port.protocol} ${port.port}`))
  }
}

/** By address of an endpoint: "protocol port" of each slice that it is in. */
type PortsByAddr = ReadonlyMap<Addr, readonly ReadonlySet<string>[]>

function portsByAddr(slices: Iterable<EndpointSlice>): PortsByAddr {
  const byAddr = new Map<Addr, ReadonlySet<string>[]>()
  for (const slice of slices) {
    const ports = new Set(slice.ports.map(({ protocol, port }) => `${protocolNumber(protocol)} ${port}`))
    for (const { addr } of slice.endpoints) put(byAddr, addr, ports)
  }
  return byAddr
}

function remembered<K, V>(map: Map<K, V>, key: K, value: V): V {
  map.set(key, value)
  return value
}

function put<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const known = map.get(key)
  if (known === undefined) map.set(key, [value])
  else known.push(value)
}

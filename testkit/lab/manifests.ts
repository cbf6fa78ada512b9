// SPDX-License-Identifier: Apache-2.0
/** Manifests of the cluster on which upstream's tests run, and of the services they make. Layer: testkit (pure). */

export const NODES = ['a', 'b', 'c'] as const
export type NodeName = (typeof NODES)[number]
export const FAMILIES = [4, 6] as const
export type Family = (typeof FAMILIES)[number]
export const PROTOS = ['tcp', 'udp'] as const
export type Proto = (typeof PROTOS)[number]

/** Zones of the nodes: one alone, two together. */
export const ZONES = { a: 'east', b: 'west', c: 'west' } as const
/** What every echo server listens on, TCP and UDP; in the host network another. */
export const PORTS = [8080, 8081, 8082] as const
export const HOST_PORT = 18080

/** Pods that answer, by node; those of the host network are `host-a` and so on. */
export const ECHOES = ['a-1', 'a-2', 'b-1', 'b-2', 'c-1'] as const
/** A pod that is evicted by its test. */
export const EVICTED = 'c-9'
export const METRICS_PORT = 9091

/** The node of a pod or a place: the letter in its name. */
export function nodeOf(place: string): NodeName {
  const letter = /^(?:node\/|shell-|host-)?([abc])(?:-\d)?$/.exec(place)?.[1]
  const found = NODES.find((node) => node === letter)
  if (found === undefined) throw new Error(`${place} is on no node`)
  return found
}

/** Of a pod, or of "node/a" and "host-a": its node's. */
export function addressOf(place: string, family: Family): string {
  const node = NODES.indexOf(nodeOf(place)) + 1
  if (place.startsWith('node/') || place.startsWith('host-')) return family === 4 ? `172.29.0.${node}` : `fd00:29::${node}`
  const last = place.startsWith('shell-') ? 200 : Number(place.split('-')[1])
  return family === 4 ? `10.29.${node}.${last}` : `fd00:2900:${node}::${last}`
}

/** Nodes, pods, settings; `felix` goes into FelixConfiguration `default`. */
export function clusterObjects(felix: object = {}): object[] {
  const shells = NODES.map((node) => podObject(`shell-${node}`))
  const hosts = NODES.map((node) => podObject(`host-${node}`))
  return [...NODES.map(nodeObject), ...[...ECHOES, EVICTED].map((name) => podObject(name)), ...shells, ...hosts, felixObject(felix)]
}

export function felixObject(spec: object): object {
  return {
    apiVersion: 'netplane.io/v3',
    kind: 'FelixConfiguration',
    metadata: { name: 'default' },
    spec: { prometheusMetricsEnabled: true, prometheusMetricsPort: METRICS_PORT, ...spec },
  }
}

export function nodeObject(name: NodeName): object {
  const index = NODES.indexOf(name) + 1
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': ZONES[name] } },
    spec: { podCIDRs: [`10.29.${index}.0/24`, `fd00:2900:${index}::/64`] },
    status: { addresses: FAMILIES.map((family) => ({ type: 'InternalIP', address: addressOf(`node/${name}`, family) })) },
  }
}

export function podObject(name: string, change: { readonly metadata?: object; readonly status?: object } = {}): object {
  const hostNetwork = name.startsWith('host-')
  const numbers = hostNetwork ? [HOST_PORT] : name.startsWith('shell-') ? [] : PORTS
  const ports = numbers.flatMap((containerPort) => ['TCP', 'UDP'].map((protocol) => ({ containerPort, protocol })))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...change.metadata },
    spec: { nodeName: nodeOf(name), hostNetwork, containers: [{ name: 'main', ports }] },
    status: { phase: 'Running', podIPs: FAMILIES.map((family) => ({ ip: addressOf(name, family) })), ...change.status },
  }
}

/** An endpoint: a pod's name, or with more to say about it. */
export type EndpointSpec =
  | string
  | {
      readonly pod: string
      readonly ready?: boolean
      readonly serving?: boolean
      readonly terminating?: boolean
      /** hints of topology: zones and nodes that should use it */
      readonly zones?: readonly string[]
      readonly nodes?: readonly string[]
    }

export interface SlicePort {
  readonly name: string
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly port: number
}

export interface SliceSpec {
  readonly ports: readonly SlicePort[]
  readonly endpoints: readonly EndpointSpec[]
  readonly families?: readonly Family[]
}

/** One object a family. */
export function sliceObjects(service: string, index: number, slice: SliceSpec & { readonly labels: object }): object[] {
  return (slice.families ?? FAMILIES).map((family) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${index}-v${family}`,
      namespace: 'default',
      labels: { ...slice.labels, 'kubernetes.io/service-name': service },
    },
    addressType: `IPv${family}`,
    ports: slice.ports,
    endpoints: slice.endpoints.map((endpoint) => endpointObject(endpoint, family)),
  }))
}

function endpointObject(spec: EndpointSpec, family: Family): object {
  const endpoint = typeof spec === 'string' ? { pod: spec } : spec
  const { pod, ready = true, terminating = false } = endpoint
  const hints = { ...names('forZones', endpoint.zones), ...names('forNodes', endpoint.nodes) }
  return {
    addresses: [addressOf(pod, family)],
    nodeName: nodeOf(pod),
    zone: ZONES[nodeOf(pod)],
    conditions: { ready, serving: endpoint.serving ?? ready, terminating },
    ...(Object.keys(hints).length === 0 ? {} : { hints }),
    targetRef: { kind: 'Pod', namespace: 'default', name: pod },
  }
}

function names(key: string, values: readonly string[] | undefined): object {
  return values === undefined ? {} : { [key]: values.map((name) => ({ name })) }
}

// SPDX-License-Identifier: Apache-2.0
/** Manifests as tests want them: short to write, complete as the API gives them. Layer: test. */
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { rejectedText } from '#lib/base/result.ts'
import { identify } from '#lib/kube/parse/parse-object.ts'
import type { KubeObject, Snapshot } from '#lib/model/snapshot.ts'
import { Store } from '#lib/store/store.ts'

/** A raw Kubernetes object. */
export type Manifest = Readonly<Record<string, unknown>>

/** "web", in namespace default, or "shop/web". */
type Name = string

export interface PortSpec {
  readonly name?: string
  readonly protocol?: string
  readonly port: number
  readonly nodePort?: number
  readonly targetPort?: number | string
}

export interface ServiceSpec {
  readonly type?: string
  /** the first is also clusterIP; default 10.96.0.1; [] for none */
  readonly clusterIPs?: readonly string[]
  readonly ports?: readonly PortSpec[]
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ingress?: readonly Manifest[]
  /** further fields of spec */
  readonly spec?: Manifest
}

export function service(name: Name, of: ServiceSpec = {}): Manifest {
  const clusterIPs = of.clusterIPs ?? ['10.96.0.1']
  const ports = of.ports ?? [{ port: 80 }]
  const cluster = clusterIPs.length === 0 ? {} : { clusterIP: clusterIPs[0], clusterIPs }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...nameOf(name), labels: of.labels ?? {}, annotations: of.annotations ?? {} },
    spec: {
      type: of.type ?? (ports.some((port) => port.nodePort !== undefined) ? 'NodePort' : 'ClusterIP'),
      ...cluster,
      ports,
      ...of.spec,
    },
    status: { loadBalancer: { ingress: of.ingress ?? [] } },
  }
}

/** "10.0.0.1", or more of it. */
export type EndpointSpec =
  | string
  | {
      readonly addr: string
      readonly node?: string
      /** uid of the pod that has it */
      readonly pod?: string
      readonly ready?: boolean
      readonly serving?: boolean
      readonly terminating?: boolean
      readonly zone?: string
      readonly forNodes?: readonly string[]
      readonly forZones?: readonly string[]
    }

export interface SliceSpec {
  /** default: the part of the slice's name before the last "-" */
  readonly service?: string
  readonly ports?: readonly { readonly name?: string; readonly protocol?: string; readonly port?: number }[]
  readonly endpoints?: readonly EndpointSpec[]
  /** default: that of the first endpoint */
  readonly addressType?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly resourceVersion?: string
}

export function slice(name: Name, of: SliceSpec = {}): Manifest {
  const metadata = nameOf(name)
  const endpoints = (of.endpoints ?? []).map((endpoint) => (typeof endpoint === 'string' ? { addr: endpoint } : endpoint))
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...metadata,
      labels: { 'kubernetes.io/service-name': of.service ?? metadata.name.slice(0, metadata.name.lastIndexOf('-')), ...of.labels },
      ...(of.resourceVersion === undefined ? {} : { resourceVersion: of.resourceVersion }),
    },
    addressType: of.addressType ?? (endpoints[0]?.addr.includes(':') === true ? 'IPv6' : 'IPv4'),
    ports: of.ports ?? [{ port: 8080 }],
    endpoints: endpoints.map(endpointOf),
  }
}

function endpointOf(endpoint: Exclude<EndpointSpec, string>): Manifest {
  const { addr, node, pod, zone, forNodes, forZones, ...conditions } = endpoint
  const hints = {
    ...(forNodes === undefined ? {} : { forNodes: forNodes.map((name) => ({ name })) }),
    ...(forZones === undefined ? {} : { forZones: forZones.map((name) => ({ name })) }),
  }
  return {
    addresses: [addr],
    conditions,
    hints,
    ...(node === undefined ? {} : { nodeName: node }),
    ...(pod === undefined ? {} : { targetRef: { kind: 'Pod', name: 'a', uid: pod } }),
    ...(zone === undefined ? {} : { zone }),
  }
}

export interface PodSpec {
  readonly node?: string
  readonly ips?: readonly string[]
  readonly phase?: string
  readonly hostNetwork?: boolean
  readonly terminating?: boolean
  readonly uid?: string
  /** second of an hour of 2026 */
  readonly started?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly serviceAccount?: string
  readonly ports?: readonly { readonly name: string; readonly port: number; readonly protocol?: string }[]
}

export function pod(name: Name, of: PodSpec = {}): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...nameOf(name),
      ...(of.labels === undefined ? {} : { labels: of.labels }),
      ...(of.uid === undefined ? {} : { uid: of.uid }),
      ...(of.terminating === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      ...(of.node === undefined ? {} : { nodeName: of.node }),
      ...(of.hostNetwork === undefined ? {} : { hostNetwork: of.hostNetwork }),
      ...(of.serviceAccount === undefined ? {} : { serviceAccountName: of.serviceAccount }),
      ...(of.ports === undefined
        ? {}
        : { containers: [{ name: 'main', ports: of.ports.map(({ port, ...rest }) => ({ ...rest, containerPort: port })) }] }),
    },
    status: {
      phase: of.phase ?? 'Running',
      ...(of.started === undefined ? {} : { startTime: new Date(Date.UTC(2026, 0, 1, 0, 0, of.started)).toISOString() }),
      ...(of.ips === undefined ? {} : { podIP: of.ips[0], podIPs: of.ips.map((ip) => ({ ip })) }),
    },
  }
}

export interface NodeSpec {
  /** InternalIPs */
  readonly addresses?: readonly string[]
  /** ExternalIPs */
  readonly external?: readonly string[]
  readonly podCIDRs?: readonly string[]
  readonly zone?: string
}

export function node(name: string, of: NodeSpec = {}): Manifest {
  const external = (of.external ?? []).map((address) => ({ type: 'ExternalIP', address }))
  const addresses = [...external, ...(of.addresses ?? []).map((address) => ({ type: 'InternalIP', address }))]
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      ...(of.zone === undefined ? {} : { labels: { 'topology.kubernetes.io/zone': of.zone } }),
    },
    spec: of.podCIDRs === undefined ? {} : { podCIDR: of.podCIDRs[0], podCIDRs: of.podCIDRs },
    status: { addresses: [{ type: 'Hostname', address: name }, ...addresses] },
  }
}

/** What its agent says of a node. */
export function nodeNetwork(name: string, spec: Manifest): Manifest {
  return { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', metadata: { name }, spec }
}

export function clusterInformation(spec: Manifest, name = 'default'): Manifest {
  return { apiVersion: 'netplane.io/v3', kind: 'ClusterInformation', metadata: { name }, spec }
}

export function namespace(name: string, labels: Readonly<Record<string, string>> = {}): Manifest {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
}

export function pool(name: string, spec: Manifest): Manifest {
  return { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name }, spec }
}

export function felixConfiguration(name: string, spec: Manifest): Manifest {
  return { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name }, spec }
}

/** Without a spec: closes all pods of its namespace for what comes in. */
export function kubernetesPolicy(name: Name, spec: Manifest = {}): Manifest {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: nameOf(name), spec: { podSelector: {}, ...spec } }
}

/** Of the Admin tier, for all pods, unless `spec` says otherwise. */
export function clusterPolicy(name: string, spec: Manifest = {}): Manifest {
  return {
    apiVersion: 'policy.networking.k8s.io/v1alpha2',
    kind: 'ClusterNetworkPolicy',
    metadata: { name },
    spec: { tier: 'Admin', priority: 10, subject: { namespaces: {} }, ...spec },
  }
}

/** Any kind of netplane.io/v3; with a slash in its name, in that namespace. */
export function v3(kind: string, name: Name, spec: Manifest = {}): Manifest {
  const metadata = name.includes('/') ? nameOf(name) : { name }
  return { apiVersion: 'netplane.io/v3', kind, metadata, spec }
}

/** The model of a manifest; throws when it is refused, unless only parts are. */
export function model(manifest: Manifest): KubeObject {
  const identified = identify(manifest)
  if (identified.kind !== 'ours') throw new Error(`not ours: ${JSON.stringify(identified)}`)
  const parsed = parseObject(manifest, identified.ref)
  if (parsed.kind === 'rejected') throw new Error(parsed.rejected.map(rejectedText).join('\n'))
  return parsed.value
}

/** A store with one synced source that holds these. */
export function storeOf(manifests: readonly Manifest[]): Store {
  const store = new Store({ sources: ['test'] })
  const sink = store.sink('test')
  sink.apply(manifests.map((manifest) => ({ kind: 'upsert', object: model(manifest) })))
  sink.synced()
  return store
}

export function snapshotOf(manifests: readonly Manifest[]): Snapshot {
  return storeOf(manifests).snapshot
}

function nameOf(name: Name): { readonly namespace: string; readonly name: string } {
  const [first = '', second] = name.split('/')
  return second === undefined ? { namespace: 'default', name: first } : { namespace: first, name: second }
}

// SPDX-License-Identifier: Apache-2.0
/** A state of a truth table → a store, by way of the parsers that read every cluster's manifests. Layer: test. */
import { isV4, parseAddr, protocolNumber } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { ICMP, ICMPV6 } from '#lib/policy/packet.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { Store } from '#lib/store/store.ts'

type Manifest = Readonly<Record<string, unknown>>

export interface StatePod {
  readonly ns: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly ip: string
  readonly ips?: readonly string[]
  readonly node: string
  readonly hostNetwork?: boolean
  readonly serviceAccount?: string
  readonly ports?: readonly { readonly name: string; readonly port: number; readonly protocol: string }[]
}

export interface StateExternal {
  readonly name: string
  readonly ip: string
}

export interface State {
  readonly namespaces: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly pods: readonly StatePod[]
  readonly nodes?: readonly { readonly name: string; readonly ip: string; readonly labels: Readonly<Record<string, string>> }[]
  readonly policies: readonly Manifest[]
}

/** A port, or what stands in its place in an ICMP packet. */
export type PortOrIcmp = number | { readonly type: number; readonly code: number }

/** Brings the store from whatever it holds to this state. Anything refused is reported to `refused`. */
export function storeOf(state: State, refused: (text: string) => void): Store {
  const store = new Store({ sources: ['state'] })
  const sink = store.sink('state')
  const objects = new Map<string, KubeObject>()
  for (const manifest of manifestsOf(state)) {
    const object = objectOf(manifest, refused)
    if (object !== undefined) objects.set(refText(object), object)
  }
  sink.apply([...objects.values()].map((object) => ({ kind: 'upsert', object })))
  sink.synced()
  return store
}

function objectOf(manifest: Manifest, refused: (text: string) => void): KubeObject | undefined {
  const identified = identify(manifest)
  if (identified.kind !== 'ours') {
    refused(identified.kind === 'foreign' ? `not ours: ${JSON.stringify(manifest)}` : rejectedText(identified.rejected))
    return undefined
  }
  const parsed = parseObject(manifest, identified.ref)
  for (const rejected of parsed.rejected) refused(rejectedText(rejected))
  return parsed.kind === 'ok' ? parsed.value : parsed.instead
}

/** The state as manifests; what is only named in it first, so that whole objects win. */
export function manifestsOf(state: State): readonly Manifest[] {
  const namespaces = Object.entries(state.namespaces).map(([name, labels]) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels },
  }))
  const nodes = (state.nodes ?? []).map(({ name, ip, labels }) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
    status: { addresses: [{ type: 'InternalIP', address: ip }] },
  }))
  // an object that was updated comes without its kind
  const policies = state.policies.map((policy) => ({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', ...policy }))
  return [...namespaces, ...nodes, ...state.pods.map(podManifest), ...policies]
}

function podManifest(pod: StatePod): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: pod.ns, name: pod.name, labels: pod.labels },
    spec: {
      nodeName: pod.node,
      hostNetwork: pod.hostNetwork ?? false,
      ...(pod.serviceAccount === undefined ? {} : { serviceAccountName: pod.serviceAccount }),
      containers: [{ name: 'main', ports: (pod.ports ?? []).map(({ name, port, protocol }) => ({ name, containerPort: port, protocol })) }],
    },
    status: { phase: 'Running', podIPs: (pod.ips ?? [pod.ip]).map((ip) => ({ ip })) },
  }
}

const EPHEMERAL = 40_000

interface Flow {
  /** addresses */
  readonly src: string
  readonly dst: string
  readonly proto: string
  readonly port: PortOrIcmp
}

export function packetOf({ src, dst, proto, port }: Flow): Packet {
  const ends: { readonly src: Addr; readonly dst: Addr } = { src: parseAddr(src), dst: parseAddr(dst) }
  if (typeof port !== 'number') return { ...ends, protocol: isV4(ends.dst) ? ICMP : ICMPV6, sport: 0, dport: 0, icmp: port }
  if (proto !== 'TCP' && proto !== 'UDP' && proto !== 'SCTP') throw new Error(`protocol ${proto}`)
  return { ...ends, protocol: protocolNumber(proto), sport: EPHEMERAL, dport: port, icmp: undefined }
}

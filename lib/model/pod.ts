// SPDX-License-Identifier: Apache-2.0
/** Pods: where they run and by which addresses and interface they are reached. Layer: lib/model. */
import { sha1 } from '../base/hash.ts'
import type { Addr } from '../base/ip.ts'
import { compareNumbers, compareText } from '../base/order.ts'
import type { Labels } from './labels.ts'
import type { NamedPort } from './policy.ts'
import { nameKey } from './ref.ts'

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

export interface Pod {
  readonly kind: 'Pod'
  readonly namespace: string
  readonly name: string
  /** as its runtime says it: another pod of the same name has another one. A manifest may have none */
  readonly uid?: string
  readonly nodeName: string | undefined
  /** at most one of each family; in a snapshot, those that the pod has for itself */
  readonly podIPs: readonly Addr[]
  /** in a snapshot: addresses that the pod has as well, but which are another's */
  readonly lost?: readonly LostAddress[]
  readonly hostNetwork: boolean
  readonly phase: PodPhase
  /** asked to go: its address may already be another pod's */
  readonly terminating: boolean
  /** ms since 1970, of a pod of which the cluster knows an address; none: the pod is only now being started */
  readonly startedAt?: number
  /** its own; pods alike share one map */
  readonly labels: Labels
  readonly serviceAccount: string
  /** of all its containers; pods alike share one list */
  readonly ports: readonly NamedPort[]
  /** the pods that it is one of, if its name was made for it; pods alike share one */
  readonly group?: PodGroup
  /** its annotations that ask for addresses, where it has any */
  readonly wishes?: Labels
  /** of this node's pods, where more is known of it than its name */
  readonly veth?: Veth
}

export interface PodGroup {
  /** "web-6d4b75cb6d-": what its name begins with; empty where it was not made */
  readonly prefix: string
  /** "ReplicaSet/web-6d4b75cb6d": what has made it; empty where nothing has */
  readonly owner: string
}

export interface LostAddress {
  readonly addr: Addr
  /** "default/web": the pod that has the address */
  readonly to: string
}

export interface Veth {
  /** name of the node's end */
  readonly iface: string
  /** another plugin's rules have a say in what passes between its pods and the network */
  readonly ours: boolean
  /** it is that of a pod which had this one's name, and is still there */
  readonly former?: true
}

/** Neither runs any more nor ever will: the pod's addresses are free. */
export function isFinished({ phase }: Pick<Pod, 'phase'>): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

/** Where platforms run kube-proxy in pods, each with the label that is "kube-proxy" there. */
const KUBE_PROXIES = [
  ['kube-system', 'k8s-app'],
  ['kube-system', 'component'],
  ['openshift-kube-proxy', 'app'],
] as const

/** The same for an API server. */
export const PROXY_PODS = KUBE_PROXIES.map(([namespace, label]) => ({ namespace, labelSelector: `${label}=kube-proxy` }))

/** One that runs or is to run. */
export function isKubeProxy(pod: Pick<Pod, 'namespace' | 'labels' | 'phase' | 'hostNetwork'>): boolean {
  const isOf = ([namespace, label]: (typeof KUBE_PROXIES)[number]): boolean =>
    pod.namespace === namespace && pod.labels.get(label) === 'kube-proxy'
  return pod.hostNetwork && !isFinished(pod) && KUBE_PROXIES.some(isOf)
}

/** True while it has addresses of its own that packets come from: what policies can select. */
export function hasOwnAddresses(pod: Pod): boolean {
  return !pod.hostNetwork && !isFinished(pod) && pod.podIPs.length > 0
}

/** The pod's own addresses, and those of which another pod has become the owner while this one is still there. */
export function statedAddresses(pod: Pod): readonly Addr[] {
  if (pod.hostNetwork || isFinished(pod)) return []
  return pod.lost === undefined ? pod.podIPs : [...pod.podIPs, ...pod.lost.map(({ addr }) => addr)]
}

const NOT_YET = Number.MAX_SAFE_INTEGER

/** Of several pods with one address the first in this order has it: one that is not going, then the younger one. */
export function compareOwners(a: Pod, b: Pod): number {
  return (
    Number(a.terminating) - Number(b.terminating) ||
    compareNumbers(b.startedAt ?? NOT_YET, a.startedAt ?? NOT_YET) ||
    compareText(a.uid ?? '', b.uid ?? '') ||
    compareText(nameKey(a), nameKey(b))
  )
}

/** Default of FelixConfiguration interfacePrefix. */
export const INTERFACE_PREFIX = 'npl'

/** Host side of a pod's veth. */
export function interfaceOf(pod: Pod, prefix: string): string {
  return pod.veth?.iface ?? workloadInterface(pod, prefix)
}

/** Our own CNI has plugged it in, as far as is known: no other plugin uses names like ours. */
export function isOurs(pod: Pod, prefix: string): boolean {
  return pod.veth?.ours ?? prefix === INTERFACE_PREFIX
}

/** What it is called unless another plugin has named it: the prefix and 11 hex digits of sha1("namespace.pod"). */
export function workloadInterface(pod: { readonly namespace: string; readonly name: string }, prefix: string = INTERFACE_PREFIX): string {
  return prefix + sha1(`${pod.namespace}.${pod.name}`).slice(0, 11)
}

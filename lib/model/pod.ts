// SPDX-License-Identifier: Apache-2.0
/** Pods: where they run and by which addresses and interface they are reached. Layer: lib/model. */
import { sha1 } from '../base/hash.ts'
import type { Addr } from '../base/ip.ts'
import type { Labels } from './labels.ts'
import type { NamedPort } from './policy.ts'

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

export interface Pod {
  readonly kind: 'Pod'
  readonly namespace: string
  readonly name: string
  /** as its runtime says it: another pod of the same name has another one. A manifest may have none */
  readonly uid?: string
  readonly nodeName: string | undefined
  /** at most one of each family */
  readonly podIPs: readonly Addr[]
  readonly hostNetwork: boolean
  readonly phase: PodPhase
  /** asked to go: its address may already be someone else's */
  readonly terminating: boolean
  /** its own; pods alike share one map */
  readonly labels: Labels
  readonly serviceAccount: string
  /** of all its containers; pods alike share one list */
  readonly ports: readonly NamedPort[]
  /** its annotations that ask for addresses, where it has any */
  readonly wishes?: Labels
  /** of this node's pods, where more is known of it than its name */
  readonly cable?: Cable
}

export interface Cable {
  /** name of the node's end */
  readonly iface: string
  /** another plugin's rules have a say in what passes between its pods and the network */
  readonly ours: boolean
  /** it is that of a pod which had this one's name, and is still there */
  readonly former?: true
}

/** True while it has addresses of its own that packets come from: what policies can select. */
export function hasOwnAddresses(pod: Pod): boolean {
  return !pod.hostNetwork && pod.phase !== 'Succeeded' && pod.phase !== 'Failed' && pod.podIPs.length > 0
}

/** Default of FelixConfiguration interfacePrefix. */
export const INTERFACE_PREFIX = 'npl'

/** Host side of a pod's veth. */
export function interfaceOf(pod: Pod, prefix: string): string {
  return pod.cable?.iface ?? workloadInterface(pod, prefix)
}

/** Our own CNI has plugged it in, as far as is known: names like ours are nobody else's. */
export function isOurs(pod: Pod, prefix: string): boolean {
  return pod.cable?.ours ?? prefix === INTERFACE_PREFIX
}

/** What it is called unless another plugin has named it: the prefix and 11 hex digits of sha1("namespace.pod"). */
export function workloadInterface(pod: { readonly namespace: string; readonly name: string }, prefix: string = INTERFACE_PREFIX): string {
  return prefix + sha1(`${pod.namespace}.${pod.name}`).slice(0, 11)
}

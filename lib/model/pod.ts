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
}

/** True while it has addresses of its own that packets come from: what policies can select. */
export function hasOwnAddresses(pod: Pod): boolean {
  return !pod.hostNetwork && pod.phase !== 'Succeeded' && pod.phase !== 'Failed' && pod.podIPs.length > 0
}

/** Default of FelixConfiguration interfacePrefix. */
export const INTERFACE_PREFIX = 'npl'

/** Host side of a pod's veth: the prefix and 11 hex digits of sha1("namespace.pod"). */
export function workloadInterface(pod: { readonly namespace: string; readonly name: string }, prefix: string = INTERFACE_PREFIX): string {
  return prefix + sha1(`${pod.namespace}.${pod.name}`).slice(0, 11)
}

// SPDX-License-Identifier: Apache-2.0
/** Updates from which the policy compiler knows the cluster. Layer: agent/compile (pure). */
import type { Addr, Cidr } from '#lib/base/ip.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { NamedPort, Policy, Profile, Tier } from '#lib/model/policy.ts'

/** Whatever has addresses and labels: a pod, a host endpoint, a node as others' peer. */
export interface PolicyEndpoint {
  readonly kind: 'pod' | 'host' | 'node'
  /** effective ones: its own, its namespace's and service account's with their prefixes, and those that are built in */
  readonly labels: Labels
  readonly addrs: readonly Addr[]
  readonly ports: readonly NamedPort[]
  /** rules of last resort: names of profiles in this order. A pod's namespace's lets everything pass where there is
   * no object of it. */
  readonly profiles: readonly string[]
  /** on this node and under policy: gets sets; nodes never */
  readonly local: boolean
  /** of a host endpoint: "*" for all interfaces, undefined where its addresses tell */
  readonly interfaceName?: string
}

/** A network set. */
export interface LabelledPrefixes {
  /** effective ones */
  readonly labels: Labels
  readonly nets: readonly Cidr[]
}

/** Where a service's endpoints are, ready or not. */
export interface ServicePeers {
  readonly slices: readonly SlicePeers[]
}

export interface SlicePeers {
  readonly addrs: readonly Addr[]
  /** by {@link portNumber} */
  readonly ports: ReadonlyMap<number, { readonly protocol: number; readonly port: number }>
}

/** Of protocol and port in one. */
export function portNumber({ protocol, port }: { readonly protocol: number; readonly port: number }): number {
  return protocol * 65536 + port
}

/** An object that is new, different or (undefined) gone. Keys: those of `refText` of policies, names of tiers and
 * profiles, texts of endpoints and sets that are the same as long as these live, namespace/name of services. */
export type PolicyUpdate =
  | { readonly kind: 'policy'; readonly key: string; readonly value: Policy | undefined }
  | { readonly kind: 'tier'; readonly key: string; readonly value: Tier | undefined }
  | { readonly kind: 'set'; readonly key: string; readonly value: LabelledPrefixes | undefined }
  | { readonly kind: 'profile'; readonly key: string; readonly value: Profile | undefined }
  | { readonly kind: 'endpoint'; readonly key: string; readonly value: PolicyEndpoint | undefined }
  | { readonly kind: 'service'; readonly key: string; readonly value: ServicePeers | undefined }

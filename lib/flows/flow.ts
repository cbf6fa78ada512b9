// SPDX-License-Identifier: Apache-2.0
/** What nodes tell of flows: who talked to whom in a window of time, what rules said to it, and how much it was.
 * Layer: lib/flows (pure). */

/** Seconds. Windows begin at multiples of it since 1970. */
export const WINDOW_SECONDS = 15

/** Which end's node tells it: by the rules of the source, or by those of the destination. */
export const REPORTERS = ['Src', 'Dst'] as const
export type Reporter = (typeof REPORTERS)[number]

export const FLOW_ACTIONS = ['Allow', 'Deny', 'Pass'] as const
export type FlowAction = (typeof FLOW_ACTIONS)[number]

export const END_TYPES = ['WorkloadEndpoint', 'HostEndpoint', 'NetworkSet', 'Network'] as const
export type EndType = (typeof END_TYPES)[number]

/** Where a namespace, or a part of a service, is none. */
export const NONE = '-'
/** Names of networks that no set has: addresses that are not routed in the internet, and all others. */
export const PRIVATE = 'pvt'
export const PUBLIC = 'pub'

/** One end as windows tell it: pods of one ReplicaSet or the like are one. */
export interface FlowEnd {
  readonly type: EndType
  /** "web-6d4b75cb6d-*" of a pod that is one of several, its own name otherwise; a host endpoint's node; a set's name;
   * `pub` or `pvt` */
  readonly name: string
  /** {@link NONE} of what belongs to the whole cluster */
  readonly namespace: string
}

/** That was meant, before translation. */
export interface FlowService {
  readonly namespace: string
  readonly name: string
  /** {@link NONE} where it has no name */
  readonly portName: string
  readonly port: number
}

/** As the API of flows calls them. */
export const HIT_KINDS = [
  'CalicoNetworkPolicy',
  'GlobalNetworkPolicy',
  'StagedNetworkPolicy',
  'StagedGlobalNetworkPolicy',
  'StagedKubernetesNetworkPolicy',
  'NetworkPolicy',
  'AdminNetworkPolicy',
  'BaselineAdminNetworkPolicy',
  'ClusterNetworkPolicy',
  'Profile',
  'EndOfTier',
] as const
export type HitKind = (typeof HIT_KINDS)[number]

export interface PolicyRef {
  readonly kind: HitKind
  /** empty for a profile */
  readonly tier: string
  /** empty for what belongs to the whole cluster */
  readonly namespace: string
  /** empty for the end of a tier */
  readonly name: string
}

/** One step of what rules said, in order: all but the last pass. */
export interface PolicyHit extends PolicyRef {
  readonly action: FlowAction
  /** place in the policy's list of this direction; {@link END_RULE} of a tier's end, {@link UNKNOWN_RULE} */
  readonly rule: number
  /** of a tier's end: the policy for which the tier is asked at all */
  readonly trigger?: PolicyRef
}

export const END_RULE = -1
export const UNKNOWN_RULE = -2

/** What tells windows of the same time apart. */
export interface FlowKey {
  readonly source: FlowEnd
  readonly dest: FlowEnd
  /** behind translation */
  readonly destPort: number
  /** undefined: none was meant */
  readonly service: FlowService | undefined
  /** "tcp", "udp", "sctp", "icmp", "icmp6"; the number of any other */
  readonly protocol: string
  readonly reporter: Reporter
  readonly action: 'Allow' | 'Deny'
  /** why a packet ended that no rule has denied, as drops are called ("flow_insert"); empty otherwise */
  readonly reason: string
  readonly enforced: readonly PolicyHit[]
  /** with the staged policies in force */
  readonly pending: readonly PolicyHit[]
}

/** Equal for equal keys, also for one that has been JSON meanwhile: fields are always made in the same order. */
export function flowKeyText(key: FlowKey): string {
  return JSON.stringify(key)
}

/** Of one key in one window. `in` is what came to the end whose node tells it, `out` what it sent. */
export interface FlowCounts {
  readonly packetsIn: number
  readonly packetsOut: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** connections that began, that ended, and that were there at any moment */
  readonly started: number
  readonly completed: number
  readonly live: number
}

/** Of one end, beyond its name: the first few of each, sorted. */
export interface EndDetails {
  /** "k=v", sorted: what all that was merged had */
  readonly labels: readonly string[]
  /** without ports */
  readonly addresses: readonly string[]
  /** whole names */
  readonly pods: readonly string[]
  /** empty where it is not known */
  readonly node: string
  /** "Deployment/web"; empty where it is not known */
  readonly owner: string
}

/** What one node knows of one key in one window. Another with the same node, key and start takes its place: it knows
 * more. */
export interface FlowWindow {
  readonly key: FlowKey
  /** seconds since 1970 */
  readonly start: number
  readonly counts: FlowCounts
  readonly source: EndDetails
  readonly dest: EndDetails
  /** of clients, the first few */
  readonly sourcePorts: readonly number[]
}

/** A window on its way. */
export interface FlowUpdate {
  readonly node: string
  /** grows with each that the node sends, over its restarts as well */
  readonly sequence: number
  readonly window: FlowWindow
}

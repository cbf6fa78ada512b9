// SPDX-License-Identifier: Apache-2.0
/** One form for all kinds of policy: whom it selects, its ordered rules, and whom those mean. Layer: lib/model. */
import type { Cidr, Port } from '../base/ip.ts'
import type { Selector } from './selector.ts'

/** `pass`: the next tier decides. */
export type Action = 'allow' | 'deny' | 'pass'

/** Both ends included; a name is looked up among the ports of the pod or host endpoint that has the port. */
export type PortMatch = { readonly from: Port; readonly to: Port } | { readonly name: string }

/** What a rule asks of one end of the packet. What is undefined asks nothing; the rest must all hold. Lists hold where one of them does, an
 * empty list never. */
export interface Side {
  /** endpoints (pods, host endpoints, nodes) and network sets, by their effective labels */
  readonly selector: Selector | undefined
  /** `anything but`: holds for addresses that no such endpoint or set has */
  readonly notSelector: Selector | undefined
  readonly nets: readonly Cidr[] | undefined
  readonly notNets: readonly Cidr[]
  readonly ports: readonly PortMatch[] | undefined
  readonly notPorts: readonly PortMatch[]
  /** endpoints of services; where the side is the destination their ports and protocols as well */
  readonly services: readonly { readonly namespace: string; readonly name: string }[] | undefined
}

export interface IcmpMatch {
  readonly type: number
  /** undefined: any */
  readonly code: number | undefined
}

export interface Rule {
  readonly action: Action
  /** what the author calls it; its place in the list otherwise */
  readonly name: string | undefined
  readonly ipVersion: 4 | 6 | undefined
  /** IP protocol numbers; `icmp` protocols are 1 and 58 and imply nothing about the version by themselves */
  readonly protocols: readonly number[] | undefined
  readonly notProtocols: readonly number[]
  readonly icmp: IcmpMatch | undefined
  readonly notIcmp: IcmpMatch | undefined
  readonly source: Side
  readonly destination: Side
}

export type PolicyKind =
  | 'KubernetesNetworkPolicy'
  | 'ClusterNetworkPolicy'
  | 'AdminNetworkPolicy'
  | 'BaselineAdminNetworkPolicy'
  | 'NetworkPolicy'
  | 'GlobalNetworkPolicy'
  | 'StagedKubernetesNetworkPolicy'
  | 'StagedNetworkPolicy'
  | 'StagedGlobalNetworkPolicy'

export interface Policy {
  readonly kind: PolicyKind
  /** empty for what belongs to the whole cluster */
  readonly namespace: string
  readonly name: string
  readonly tier: string
  /** ascending within the tier, then by kind, namespace and name; Infinity where none is given */
  readonly order: number
  /** endpoints it applies to, by their effective labels; never matches a closed object's labels by accident: an unreadable one is `closed` */
  readonly subject: Selector
  /** directions it applies to, as the endpoint sees them; undefined: not in this direction. An empty list denies by the tier's end. */
  readonly ingress: readonly Rule[] | undefined
  readonly egress: readonly Rule[] | undefined
  /** evaluated beside the others, decides nothing */
  readonly staged: 'Set' | 'Delete' | undefined
  /** on host endpoints: of forwarded traffic as well; before services are translated; without flows */
  readonly scope: 'normal' | 'forward' | 'preDNAT' | 'doNotTrack'
}

/** What happens to what the policies of a tier that select the endpoint say nothing of. */
export interface Tier {
  readonly kind: 'Tier'
  readonly namespace: ''
  readonly name: string
  readonly order: number
  readonly end: 'deny' | 'pass'
}

/** Tiers that are always there. */
export const BUILT_IN_TIERS: readonly Tier[] = [
  { kind: 'Tier', namespace: '', name: 'adminnetworkpolicy', order: 1000, end: 'pass' },
  { kind: 'Tier', namespace: '', name: 'default', order: 1_000_000, end: 'deny' },
  { kind: 'Tier', namespace: '', name: 'baselineadminnetworkpolicy', order: 10_000_000, end: 'pass' },
]

/** Addresses with labels. */
export interface NetworkSet {
  readonly kind: 'NetworkSet'
  /** empty: global */
  readonly namespace: string
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly nets: readonly Cidr[]
}

/** Rules of last resort, after all tiers; labels that the endpoints which name it inherit. */
export interface Profile {
  readonly kind: 'Profile'
  readonly namespace: ''
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly ingress: readonly Rule[]
  readonly egress: readonly Rule[]
}

export interface NamedPort {
  readonly name: string
  /** IP protocol number */
  readonly protocol: number
  readonly port: Port
}

/** A node's own interface, or all of them, under policy. */
export interface HostEndpoint {
  readonly kind: 'HostEndpoint'
  readonly namespace: ''
  readonly name: string
  readonly node: string
  readonly labels: ReadonlyMap<string, string>
  /** "*": all interfaces and the node's own processes; undefined: found by `expectedIPs` */
  readonly interfaceName: string | undefined
  readonly expectedIPs: readonly Cidr['addr'][]
  readonly profiles: readonly string[]
  readonly ports: readonly NamedPort[]
}

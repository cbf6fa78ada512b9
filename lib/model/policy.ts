// SPDX-License-Identifier: Apache-2.0
/** One form for all kinds of policy: what it selects, its ordered rules, and their peers. Layer: lib/model. */
import type { Addr, Cidr, Port } from '../base/ip.ts'
import type { Labels } from './labels.ts'
import type { Selector } from './selector/selector.ts'

/** `pass`: the next tier decides. */
export type Action = 'allow' | 'deny' | 'pass'

/** Both ends included, 0 allowed. A name is looked up among the ports of the pod or host endpoint that has the
 * address and, where the side has a selector, that this finds by its own labels and notSelector does not: an
 * address that is only in a network set has no named ports. */
export type PortMatch = { readonly from: number; readonly to: number } | { readonly name: string }

/** What a rule asks of one end of the packet. What is undefined asks nothing; the rest must all hold. Lists hold
 * where one of them does, an empty list never. */
export interface Side {
  /** endpoints (pods, host endpoints) and network sets, by their effective labels; nodes are none of these */
  readonly selector: Selector | undefined
  /** beside a selector: the same endpoint or set is found by that and not by this. Alone it is `anything but`: holds
   * for addresses that no such endpoint or set has */
  readonly notSelector: Selector | undefined
  /** nodes, by their own labels */
  readonly nodes: Selector | undefined
  readonly nets: readonly Cidr[] | undefined
  readonly notNets: readonly Cidr[]
  readonly ports: readonly PortMatch[] | undefined
  readonly notPorts: readonly PortMatch[]
  /** endpoints of services, whether ready or not; where the side is the destination their ports and protocols as
   * well */
  readonly services: readonly { readonly namespace: string; readonly name: string }[] | undefined
}

/** Says nothing. */
export const ANYWHERE: Side = Object.freeze({
  selector: undefined,
  notSelector: undefined,
  nodes: undefined,
  nets: undefined,
  notNets: [],
  ports: undefined,
  notPorts: [],
  services: undefined,
})

export interface IcmpMatch {
  readonly type: number
  /** undefined: any */
  readonly code: number | undefined
}

/** Everything it says must hold. What the author wrote as one rule may be several here, next to each other and with
 * the same `at`: each of several peers, and each protocol with its own ports. */
export interface Rule {
  /** its place in the author's list, from 0 */
  readonly at: number
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

/** A rule of which only what is given is asked. */
export function ruleOf(at: number, of: Partial<Omit<Rule, 'at'>>): Rule {
  return {
    at,
    action: 'allow',
    name: undefined,
    ipVersion: undefined,
    protocols: undefined,
    notProtocols: [],
    icmp: undefined,
    notIcmp: undefined,
    source: ANYWHERE,
    destination: ANYWHERE,
    ...of,
  }
}

/** In the order in which policies of one tier, order and namespace are asked. Staged ones stand where the real ones
 * would. */
export const POLICY_KINDS = [
  'GlobalNetworkPolicy',
  'StagedGlobalNetworkPolicy',
  'NetworkPolicy',
  'StagedNetworkPolicy',
  'KubernetesNetworkPolicy',
  'StagedKubernetesNetworkPolicy',
  'ClusterNetworkPolicy',
  'AdminNetworkPolicy',
  'BaselineAdminNetworkPolicy',
] as const

/** `KubernetesNetworkPolicy` is NetworkPolicy of networking.k8s.io, `NetworkPolicy` that of netplane.io. */
export type PolicyKind = (typeof POLICY_KINDS)[number]

/** The real policy that a staged one is about. */
export function realKind(kind: PolicyKind): PolicyKind {
  switch (kind) {
    case 'StagedGlobalNetworkPolicy':
      return 'GlobalNetworkPolicy'
    case 'StagedNetworkPolicy':
      return 'NetworkPolicy'
    case 'StagedKubernetesNetworkPolicy':
      return 'KubernetesNetworkPolicy'
    default:
      return kind
  }
}

export interface Policy {
  readonly kind: PolicyKind
  /** empty for what belongs to the whole cluster */
  readonly namespace: string
  readonly name: string
  readonly tier: string
  /** ascending within the tier, then as `comparePolicies` has it; Infinity where none is given */
  readonly order: number
  /** endpoints it applies to, by their effective labels */
  readonly subject: Selector
  /** directions it applies to, as the endpoint sees them; undefined: not in this direction. An empty list denies by
   * the tier's end. */
  readonly ingress: readonly Rule[] | undefined
  readonly egress: readonly Rule[] | undefined
  /** evaluated beside the others, decides nothing: `Set` stands in for the real policy of that kind and name,
   * `Delete` takes it away, `Ignore` does nothing at all */
  readonly staged: 'Set' | 'Delete' | 'Ignore' | undefined
  /** on host endpoints: of forwarded traffic as well; before services are translated; without flows */
  readonly scope: Scope
  /** its rules could not be read: it has none, and the tier denies to what it selects what no other policy of the
   * tier decides, even if the tier otherwise ends in a pass */
  readonly closed?: true
}

/** `normal`: what the host itself sends and receives, and all of pods' traffic; `forward`: what passes through the
 * host as well. */
export type Scope = 'normal' | 'forward' | 'preDNAT' | 'doNotTrack'

/** As the endpoint sees it: `ingress` is what comes to it. */
export const DIRECTIONS = ['ingress', 'egress'] as const
export type Direction = (typeof DIRECTIONS)[number]

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
  readonly kind: 'NetworkSet' | 'GlobalNetworkSet'
  /** empty: global */
  readonly namespace: string
  readonly name: string
  /** its own */
  readonly labels: Labels
  readonly nets: readonly Cidr[]
}

/** Rules of last resort, after all tiers; labels that the endpoints which have it inherit. A pod has those of its
 * namespace, "kns.<namespace>", and of its service account, "ksa.<namespace>.<name>"; where no Profile says
 * otherwise the first allows everything and the second says nothing. A host endpoint has those that it names; where no
 * Profile says otherwise "netplane-default-allow" allows everything and any other says nothing. */
export interface Profile {
  readonly kind: 'Profile'
  readonly namespace: ''
  readonly name: string
  readonly labels: Labels
  readonly ingress: readonly Rule[]
  readonly egress: readonly Rule[]
}

export interface NamedPort {
  readonly name: string
  /** IP protocol number */
  readonly protocol: number
  readonly port: Port
}

/** A name that one endpoint has several times in one protocol means the first of them, as it does to Services. */
export function firstOfEachName(ports: readonly NamedPort[]): readonly NamedPort[] {
  const first = new Map<string, NamedPort>()
  for (const port of ports) {
    const key = `${port.protocol} ${port.name}`
    if (!first.has(key)) first.set(key, port)
  }
  return first.size === ports.length ? ports : [...first.values()]
}

/** A node's own interface, or all of them, under policy. */
export interface HostEndpoint {
  readonly kind: 'HostEndpoint'
  readonly namespace: ''
  readonly name: string
  readonly node: string
  readonly labels: Labels
  /** "*": all interfaces and the node's own processes; undefined: found by `expectedIPs` */
  readonly interfaceName: string | undefined
  readonly expectedIPs: readonly Addr[]
  readonly profiles: readonly string[]
  readonly ports: readonly NamedPort[]
}

/** Whether the node has a HostEndpoint, so that programs ask rules about what it sends and receives itself. */
export function hasHostEndpoint(endpoints: Iterable<HostEndpoint>, node: string): boolean {
  return [...endpoints].some((endpoint) => endpoint.node === node)
}

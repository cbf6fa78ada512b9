// SPDX-License-Identifier: Apache-2.0
/** The whole of what the sources say, as the compiler sees it, and what changed in it. Layer: lib/model. */
import type { EndpointSlice } from './endpoint-slice.ts'
import type { FelixConfiguration } from './felix-configuration.ts'
import type { IPPool } from './ip-pool.ts'
import type { Namespace } from './namespace.ts'
import type { Node, NodeNetwork } from './node.ts'
import { POLICY_KINDS } from './policy.ts'
import type { HostEndpoint, NetworkSet, Policy, PolicyKind, Profile, Tier } from './policy.ts'
import type { Pod } from './pod.ts'
import type { Kind } from './ref.ts'
import type { ServiceAccount } from './service-account.ts'
import type { Service } from './service.ts'

/** By kind. */
interface Objects extends Readonly<Record<PolicyKind, Policy>> {
  readonly Service: Service
  readonly EndpointSlice: EndpointSlice
  readonly Pod: Pod
  readonly Namespace: Namespace
  readonly Node: Node
  readonly NodeNetwork: NodeNetwork
  readonly IPPool: IPPool
  readonly FelixConfiguration: FelixConfiguration
  readonly ServiceAccount: ServiceAccount
  readonly Tier: Tier
  readonly NetworkSet: NetworkSet
  readonly GlobalNetworkSet: NetworkSet
  readonly Profile: Profile
  readonly HostEndpoint: HostEndpoint
}

/** What sources have. */
export type KubeObject = Objects[Kind]

/** Kinds of which a snapshot has objects: a Node and a NodeNetwork make one. */
export type SnapshotKind = Exclude<Kind, 'NodeNetwork'>
export type SnapshotObject = Objects[SnapshotKind]

type ObjectOf<K extends SnapshotKind> = Objects[K]

/** A read-only view. It changes in place, but never during one synchronous piece of work; the values in it never
 * change. Keys of the maps are those of `nameKey`. */
export interface Snapshot {
  /** grows with every change */
  readonly revision: number
  readonly services: ReadonlyMap<string, Service>
  /** of several with one address one has it: `compareOwners` */
  readonly pods: ReadonlyMap<string, Pod>
  readonly namespaces: ReadonlyMap<string, Namespace>
  readonly nodes: ReadonlyMap<string, Node>
  /** what their agents say of them, which is in `nodes` already */
  readonly nodeNetworks: ReadonlyMap<string, NodeNetwork>
  readonly pools: ReadonlyMap<string, IPPool>
  readonly felixConfigurations: ReadonlyMap<string, FelixConfiguration>
  readonly serviceAccounts: ReadonlyMap<string, ServiceAccount>
  /** of all kinds; keys are those of `refText` */
  readonly policies: ReadonlyMap<string, Policy>
  readonly tiers: ReadonlyMap<string, Tier>
  /** of both kinds: the keys of global ones have no slash */
  readonly networkSets: ReadonlyMap<string, NetworkSet>
  readonly profiles: ReadonlyMap<string, Profile>
  readonly hostEndpoints: ReadonlyMap<string, HostEndpoint>
  /** slices of the service "namespace/name", sorted by name */
  slicesOf(service: string): readonly EndpointSlice[]
  /** as well, with those that are not ours to serve, in no particular order: what rules mean by a service */
  allSlicesOf(service: string): readonly EndpointSlice[]
  podsOn(node: string): Iterable<Pod>
  /** Keys of services with an endpoint on one of these nodes. Walks all slices (a few ms at 100,000 endpoints): node
   * addresses change so rarely that an index would cost more. */
  servicesOn(nodes: ReadonlySet<string>): ReadonlySet<string>
}

type ChangeOf<T extends SnapshotObject> = T extends SnapshotObject
  ? { readonly kind: T['kind']; readonly before: T | undefined; readonly after: T | undefined }
  : never

/** One object that is not what it was; at least one of both is there, and they differ. */
export type ObjectChange = ChangeOf<SnapshotObject>

/** The change of one object; undefined when it was not there and is not. Both must be of one kind. */
export function objectChange(before: SnapshotObject | undefined, after: SnapshotObject | undefined): ObjectChange | undefined {
  const kind = (after ?? before)?.kind
  switch (kind) {
    case undefined:
      return undefined
    case 'Service':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'EndpointSlice':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'Pod':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'Namespace':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'Node':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'IPPool':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'FelixConfiguration':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'ServiceAccount':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'Tier':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'NetworkSet':
    case 'GlobalNetworkSet':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'Profile':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    case 'HostEndpoint':
      return { kind, before: pick(before, kind), after: pick(after, kind) }
    default:
      return { kind, before: pick(before, kind), after: pick(after, kind) }
  }
}

function pick<K extends SnapshotKind>(object: SnapshotObject | undefined, kind: K): ObjectOf<K> | undefined {
  return object !== undefined && isKind(object, kind) ? object : undefined
}

function isKind<K extends SnapshotKind>(object: SnapshotObject, kind: K): object is ObjectOf<K> {
  return object.kind === kind
}

const POLICIES: ReadonlySet<string> = new Set(POLICY_KINDS)

export function isPolicyKind(kind: Kind): kind is PolicyKind {
  return POLICIES.has(kind)
}

const POLICY_MATTERS: ReadonlySet<string> = new Set([...POLICIES, 'Tier', 'NetworkSet', 'GlobalNetworkSet', 'Profile', 'HostEndpoint'])

/** Kinds that say what is let through: policies, and what they rest on. Without their last good versions a restart
 * would open or close something. */
export function isPolicyMatter(kind: string): boolean {
  return POLICY_MATTERS.has(kind)
}

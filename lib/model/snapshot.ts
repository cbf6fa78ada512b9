// SPDX-License-Identifier: Apache-2.0
/** The whole of what the sources say, as the compiler sees it, and what changed in it. Layer: lib/model. */
import type { ClusterInformation } from './cluster-information.ts'
import type { EndpointSlice } from './endpoint-slice.ts'
import type { FelixConfiguration } from './felix-configuration.ts'
import type { IPPool } from './ip-pool.ts'
import type { CollectionName, COLLECTIONS, Kind } from './kinds.ts'
import type { Namespace } from './namespace.ts'
import type { Node, NodeNetwork } from './node.ts'
import type { HostEndpoint, NetworkSet, Policy, PolicyKind, Profile, Tier } from './policy.ts'
import type { Pod } from './pod.ts'
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
  readonly ClusterInformation: ClusterInformation
}

/** What sources have. */
export type KubeObject = Objects[Kind]

/** Kinds of which a snapshot has objects: a Node and a NodeNetwork make one. */
export type SnapshotKind = Exclude<Kind, 'NodeNetwork'>
export type SnapshotObject = Objects[SnapshotKind]

/** What a collection of a snapshot has. */
export type ObjectIn<C extends CollectionName> = Objects[{ [K in Kind]: (typeof COLLECTIONS)[K] extends C ? K : never }[Kind]]

/** By name; keys are those of `objectKey`. */
type Collections = { readonly [C in CollectionName]: ReadonlyMap<string, ObjectIn<C>> }

/** A read-only view. It changes in place, but never during one synchronous piece of work; the values in it never
 * change. */
export interface Snapshot extends Collections {
  /** grows with every change */
  readonly revision: number
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
  if (kind === undefined) return undefined
  const change = { kind, before, after }
  return isOfOneKind(change) ? change : undefined
}

function isOfOneKind(
  change: Record<'before' | 'after', SnapshotObject | undefined> & { readonly kind: SnapshotKind },
): change is ObjectChange {
  return [change.before, change.after].every((object) => object === undefined || object.kind === change.kind)
}

// SPDX-License-Identifier: Apache-2.0
/** Takes events of all sources, holds the current objects, and hands out what changed since it was last asked.
 * Layer: lib/store.
 *
 * Nothing is copied per change: the snapshot is a view of the live maps, valid as it is until control returns to
 * the event loop. Values are replaced, never changed, so one that was read stays as it was. */
import { deepEqual } from '../base/deep-equal.ts'
import type { EndpointSlice } from '../model/endpoint-slice.ts'
import type { FelixConfiguration } from '../model/felix-configuration.ts'
import type { IPPool } from '../model/ip-pool.ts'
import type { Namespace } from '../model/namespace.ts'
import { nodeFrom, type Node, type NodeNetwork } from '../model/node.ts'
import type { HostEndpoint, NetworkSet, Policy, PolicyKind, Profile, Tier } from '../model/policy.ts'
import type { Pod } from '../model/pod.ts'
import { isPolicyKind, objectChange } from '../model/snapshot.ts'
import { nameKey, refText } from '../model/ref.ts'
import type { Ref } from '../model/ref.ts'
import type { KubeObject, ObjectChange, Snapshot, SnapshotKind, SnapshotObject } from '../model/snapshot.ts'
import type { ServiceAccount } from '../model/service-account.ts'
import type { Service } from '../model/service.ts'
import { GroupedIndex } from './grouped-index.ts'
import { SourcePrecedence } from './source-precedence.ts'
import { PodAddresses } from './pod-addresses.ts'
import type { Sink, SourceEvent, SourceStatus } from './source.ts'

type SnapshotRef = Ref & { readonly kind: SnapshotKind }

export interface StoreOptions {
  /** names of all sources; where two have the same object, the earlier one's is taken */
  readonly sources: readonly string[]
  /** the store is synced and there is something new; not called again until the changes are taken, never before the
   * store is synced */
  readonly onChange?: () => void
  readonly onStatus?: (source: string, status: SourceStatus) => void
}

export class Store {
  readonly snapshot: Snapshot
  readonly #services = new Map<string, Service>()
  readonly #slices = new Map<string, EndpointSlice>()
  readonly #pods = new Map<string, Pod>()
  readonly #podAddresses = new PodAddresses()
  readonly #namespaces = new Map<string, Namespace>()
  readonly #nodes = new Map<string, Node>()
  /** of the nodes above, what the sources' own objects say */
  readonly #nodeObjects = new Map<string, Node>()
  readonly #nodeNetworks = new Map<string, NodeNetwork>()
  readonly #pools = new Map<string, IPPool>()
  readonly #felix = new Map<string, FelixConfiguration>()
  readonly #serviceAccounts = new Map<string, ServiceAccount>()
  /** by ref: kinds share names */
  readonly #policies = new Map<string, Policy>()
  readonly #tiers = new Map<string, Tier>()
  readonly #networkSets = new Map<string, NetworkSet>()
  readonly #profiles = new Map<string, Profile>()
  readonly #hostEndpoints = new Map<string, HostEndpoint>()
  readonly #slicesByService = new GroupedIndex<EndpointSlice>((slice) =>
    slice.service === undefined ? undefined : `${slice.namespace}/${slice.service}`,
  )
  readonly #unservedSlices = new GroupedIndex<EndpointSlice>((slice) =>
    slice.unserved === undefined ? undefined : `${slice.namespace}/${slice.unserved}`,
  )
  readonly #podsByNode = new GroupedIndex<Pod>((pod) => pod.nodeName)
  readonly #layers: SourcePrecedence
  readonly #waitingFor: Set<string>
  readonly #options: StoreOptions
  /** by ref: the value it had when changes were last taken */
  #pending = new Map<string, { readonly ref: SnapshotRef; readonly before: SnapshotObject | undefined }>()
  #told = false
  #revision = 0

  constructor(options: StoreOptions) {
    this.#options = options
    this.#layers = new SourcePrecedence(options.sources)
    this.#waitingFor = new Set(options.sources)
    this.snapshot = this.#view()
  }

  /** True when every source is synced. */
  get synced(): boolean {
    return this.#waitingFor.size === 0
  }

  /** Where the source of this name puts its events. */
  sink(source: string): Sink {
    return {
      apply: (events) => {
        this.#apply(source, events)
      },
      synced: () => {
        if (this.#waitingFor.delete(source) && this.synced) this.#tell()
      },
      status: (status) => this.#options.onStatus?.(source, status),
    }
  }

  /** What differs from the last time this was called, each object once, in no particular order. Empties it. */
  takeChanges(): readonly ObjectChange[] {
    const pending = this.#pending
    this.#pending = new Map()
    this.#told = false
    const changes: ObjectChange[] = []
    for (const { ref, before } of pending.values()) {
      const after = this.#get(ref)
      // it may have come back to what it was
      const change = deepEqual(before, after) ? undefined : objectChange(before, after)
      if (change !== undefined) changes.push(change)
    }
    return changes
  }

  #apply(source: string, events: readonly SourceEvent[]): void {
    for (const event of events) {
      const ref = event.kind === 'upsert' ? event.object : event.ref
      const object = event.kind === 'upsert' ? event.object : undefined
      this.#take(ref, this.#layers.set(source, { ref, object }))
    }
    if (this.#pending.size > 0) this.#tell()
  }

  #take(ref: Ref, object: KubeObject | undefined): void {
    const { kind, namespace, name } = ref
    if (kind === 'Pod') return this.#takePod(ref, object?.kind === kind ? object : undefined)
    if (kind === 'Node') putIn(this.#nodeObjects, name, object?.kind === kind ? object : undefined)
    else if (kind === 'NodeNetwork') putIn(this.#nodeNetworks, name, object?.kind === kind ? object : undefined)
    else return this.#put({ kind, namespace, name }, object?.kind === 'NodeNetwork' ? undefined : object)
    this.#put({ kind: 'Node', namespace, name }, nodeFrom(this.#nodeObjects.get(name), this.#nodeNetworks.get(name)))
  }

  /** Another pod may have its address from now on, or no longer. */
  #takePod({ namespace, name }: Ref, object: Pod | undefined): void {
    const shown = this.#podAddresses.replace(this.#pods.get(nameKey({ namespace, name })), object)
    if (object === undefined) this.#put({ kind: 'Pod', namespace, name }, undefined)
    for (const pod of shown) this.#put(pod, pod)
  }

  #put(ref: SnapshotRef, after: SnapshotObject | undefined): void {
    const before = this.#get(ref)
    if (deepEqual(before, after)) return
    const key = refText(ref)
    if (!this.#pending.has(key)) this.#pending.set(key, { ref, before })
    this.#revision++
    this.#replace(before, after)
  }

  #tell(): void {
    if (this.#told || !this.synced) return
    this.#told = true
    this.#options.onChange?.()
  }

  #get(ref: SnapshotRef): SnapshotObject | undefined {
    return isPolicyKind(ref.kind) ? this.#policies.get(refText(ref)) : this.#mapOf(ref.kind).get(nameKey(ref))
  }

  #mapOf(kind: Exclude<SnapshotKind, PolicyKind>): ReadonlyMap<string, SnapshotObject> {
    switch (kind) {
      case 'Service':
        return this.#services
      case 'EndpointSlice':
        return this.#slices
      case 'Pod':
        return this.#pods
      case 'Namespace':
        return this.#namespaces
      case 'Node':
        return this.#nodes
      case 'IPPool':
        return this.#pools
      case 'FelixConfiguration':
        return this.#felix
      case 'ServiceAccount':
        return this.#serviceAccounts
      case 'Tier':
        return this.#tiers
      case 'NetworkSet':
      case 'GlobalNetworkSet':
        return this.#networkSets
      case 'Profile':
        return this.#profiles
      case 'HostEndpoint':
        return this.#hostEndpoints
    }
  }

  #replace(before: SnapshotObject | undefined, after: SnapshotObject | undefined): void {
    const change = objectChange(before, after)
    if (change === undefined) return
    switch (change.kind) {
      case 'Service':
        return replaceIn(this.#services, change)
      case 'EndpointSlice':
        this.#slicesByService.replace(change.before, change.after)
        this.#unservedSlices.replace(change.before, change.after)
        return replaceIn(this.#slices, change)
      case 'Pod':
        this.#podsByNode.replace(change.before, change.after)
        return replaceIn(this.#pods, change)
      case 'Namespace':
        return replaceIn(this.#namespaces, change)
      case 'Node':
        return replaceIn(this.#nodes, change)
      case 'IPPool':
        return replaceIn(this.#pools, change)
      case 'FelixConfiguration':
        return replaceIn(this.#felix, change)
      case 'ServiceAccount':
        return replaceIn(this.#serviceAccounts, change)
      case 'Tier':
        return replaceIn(this.#tiers, change)
      case 'NetworkSet':
      case 'GlobalNetworkSet':
        return replaceIn(this.#networkSets, change)
      case 'Profile':
        return replaceIn(this.#profiles, change)
      case 'HostEndpoint':
        return replaceIn(this.#hostEndpoints, change)
      default:
        return replaceIn(this.#policies, change, refText)
    }
  }

  #view(): Snapshot {
    const revision = (): number => this.#revision
    return {
      get revision() {
        return revision()
      },
      services: this.#services,
      pods: this.#pods,
      namespaces: this.#namespaces,
      nodes: this.#nodes,
      nodeNetworks: this.#nodeNetworks,
      pools: this.#pools,
      felixConfigurations: this.#felix,
      serviceAccounts: this.#serviceAccounts,
      policies: this.#policies,
      tiers: this.#tiers,
      networkSets: this.#networkSets,
      profiles: this.#profiles,
      hostEndpoints: this.#hostEndpoints,
      slicesOf: (service) => this.#slicesByService.get(service),
      allSlicesOf: (service) => [...this.#slicesByService.get(service), ...this.#unservedSlices.get(service)],
      podsOn: (node) => this.#podsByNode.get(node),
      servicesOn: (nodes) => this.#servicesOn(nodes),
    }
  }

  #servicesOn(nodes: ReadonlySet<string>): ReadonlySet<string> {
    const found = new Set<string>()
    const isThere = (slice: EndpointSlice): boolean =>
      slice.endpoints.some((endpoint) => endpoint.nodeName !== undefined && nodes.has(endpoint.nodeName))
    for (const [service, slices] of this.#slicesByService.groups()) if (slices.some(isThere)) found.add(service)
    return found
  }
}

function putIn<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

function replaceIn<T extends SnapshotObject>(
  map: Map<string, T>,
  change: { readonly before: T | undefined; readonly after: T | undefined },
  keyOf: (object: T) => string = nameKey,
): void {
  if (change.after !== undefined) map.set(keyOf(change.after), change.after)
  else if (change.before !== undefined) map.delete(keyOf(change.before))
}

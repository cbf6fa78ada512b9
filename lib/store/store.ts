// SPDX-License-Identifier: Apache-2.0
/** Takes events of all sources, holds the current objects, and hands out what changed since it was last asked.
 * Layer: lib/store.
 *
 * Nothing is copied per change: the snapshot is a view of the live maps. It is valid as it is until control returns to
 * the event loop, or as long as {@link Store.hold} holds it. Values are replaced, never changed, so one that was read
 * stays as it was. */
import { deepEqual } from '../base/deep-equal.ts'
import { InternalError } from '../base/errors.ts'
import type { EndpointSlice } from '../model/endpoint-slice.ts'
import { COLLECTIONS, type CollectionName } from '../model/kinds.ts'
import { nodeFrom, type Node } from '../model/node.ts'
import type { Pod } from '../model/pod.ts'
import { nameKey, objectKey, refText, type Ref } from '../model/ref.ts'
import { objectChange } from '../model/snapshot.ts'
import type { KubeObject, ObjectChange, ObjectIn, Snapshot, SnapshotKind, SnapshotObject } from '../model/snapshot.ts'
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
  readonly #collections: { readonly [C in CollectionName]: Map<string, ObjectIn<C>> } = {
    services: new Map(),
    slices: new Map(),
    pods: new Map(),
    namespaces: new Map(),
    nodes: new Map(),
    nodeNetworks: new Map(),
    pools: new Map(),
    felixConfigurations: new Map(),
    serviceAccounts: new Map(),
    policies: new Map(),
    tiers: new Map(),
    networkSets: new Map(),
    profiles: new Map(),
    hostEndpoints: new Map(),
    clusterInformations: new Map(),
  }
  readonly #podAddresses = new PodAddresses()
  /** what the sources' own objects say of nodes */
  readonly #nodeObjects = new Map<string, Node>()
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
  /** events that came while the snapshot is held, in order; undefined: it is not */
  #waiting: [source: string, events: readonly SourceEvent[]][] | undefined
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

  /** Until the result is disposed of, the snapshot stays as it is: events wait. Once at a time. */
  hold(): Disposable {
    if (this.#waiting !== undefined) throw new InternalError('the snapshot is held already')
    this.#waiting = []
    return {
      [Symbol.dispose]: () => {
        const waiting = this.#waiting ?? []
        this.#waiting = undefined
        for (const [source, events] of waiting) this.#apply(source, events)
      },
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
    if (this.#waiting !== undefined) {
      this.#waiting.push([source, events])
      return
    }
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
    else if (kind === 'NodeNetwork') putIn(this.#collections.nodeNetworks, name, object?.kind === kind ? object : undefined)
    else return this.#put({ kind, namespace, name }, object?.kind === 'NodeNetwork' ? undefined : object)
    this.#put({ kind: 'Node', namespace, name }, nodeFrom(this.#nodeObjects.get(name), this.#collections.nodeNetworks.get(name)))
  }

  /** Another pod may have its address from now on, or no longer. */
  #takePod({ namespace, name }: Ref, object: Pod | undefined): void {
    const shown = this.#podAddresses.replace(this.#collections.pods.get(nameKey({ namespace, name })), object)
    if (object === undefined) this.#put({ kind: 'Pod', namespace, name }, undefined)
    for (const pod of shown) this.#put(pod, pod)
  }

  #put(ref: SnapshotRef, after: SnapshotObject | undefined): void {
    const before = this.#get(ref)
    if (deepEqual(before, after)) return
    const key = refText(ref)
    if (!this.#pending.has(key)) this.#pending.set(key, { ref, before })
    this.#revision++
    putIn(this.#mapOf(ref), objectKey(ref), after)
    this.#index(objectChange(before, after))
  }

  #tell(): void {
    if (this.#told || !this.synced) return
    this.#told = true
    this.#options.onChange?.()
  }

  #get(ref: SnapshotRef): SnapshotObject | undefined {
    return this.#mapOf(ref).get(objectKey(ref))
  }

  #mapOf({ kind }: SnapshotRef): Map<string, SnapshotObject> {
    return this.#collections[COLLECTIONS[kind]]
  }

  #index(change: ObjectChange | undefined): void {
    if (change?.kind === 'Pod') this.#podsByNode.replace(change.before, change.after)
    if (change?.kind !== 'EndpointSlice') return
    this.#slicesByService.replace(change.before, change.after)
    this.#unservedSlices.replace(change.before, change.after)
  }

  #view(): Snapshot {
    const revision = (): number => this.#revision
    return {
      ...this.#collections,
      get revision() {
        return revision()
      },
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

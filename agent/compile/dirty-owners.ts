// SPDX-License-Identifier: Apache-2.0
/** Whose rows a change may alter. Layer: agent/compile (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Kind } from '#lib/model/kinds.ts'
import { nodeAddress } from '#lib/model/node.ts'
import type { Node } from '#lib/model/node.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import { API_SERVERS, type ApiServerAddress } from './api-server-addresses.ts'
import type { CompileSettings } from './settings.ts'

/** What compilation depends on besides objects. */
export interface Surroundings {
  readonly settings: CompileSettings
  /** where the agent asks API servers */
  readonly servers?: readonly ApiServerAddress[]
}

/** The service of the API server. */
export const API_SERVER = 'default/kubernetes'

export class DirtyOwners {
  readonly owners = new Set<string>()
  readonly #self: string
  readonly #snapshot: Snapshot
  readonly #moved = new Set<string>()
  /** what belongs to the node as a whole */
  node = false

  /** `self` is this node's name */
  constructor(of: { readonly self: string; readonly snapshot: Snapshot }) {
    this.#self = of.self
    this.#snapshot = of.snapshot
  }

  all(): void {
    this.node = true
    this.owners.add(API_SERVERS)
    this.#services()
    this.#nodes()
    this.#pods()
    for (const name of this.#snapshot.pools.keys()) this.#add('IPPool', name)
  }

  objects(changes: readonly ObjectChange[]): void {
    for (const change of changes) this.#object(change)
    // backends on nodes that have other addresses are reached another way
    if (this.#moved.size > 0) for (const service of this.#snapshot.servicesOn(this.#moved)) this.#add('Service', service)
  }

  #object(change: ObjectChange): void {
    switch (change.kind) {
      case 'Service':
        return this.#named(change)
      case 'EndpointSlice':
        for (const slice of [change.before, change.after])
          if (slice?.service !== undefined) this.#add('Service', `${slice.namespace}/${slice.service}`)
        return
      case 'Pod':
        if (change.before?.nodeName !== this.#self && change.after?.nodeName !== this.#self) return
        this.node = true
        return this.#named(change)
      case 'Node':
        this.node = true
        this.#named(change)
        return this.#nodeChanged(change)
      case 'IPPool':
        this.node = true
        this.#named(change)
        this.#nodes()
        return this.#pods()
      case 'HostEndpoint':
        this.node = true
        return
      case 'ClusterNetworkPolicy':
        if (change.before === undefined || change.after === undefined) this.node = true
        return
      case 'GlobalNetworkPolicy':
        for (const policy of [change.before, change.after]) if (policy?.scope === 'doNotTrack') this.node = true
        return
      default:
        return
    }
  }

  /** What is not an object. */
  surroundings(before: Surroundings, after: Surroundings): void {
    const [old, now] = [before.settings, after.settings]
    if (!deepEqual(old, now)) this.node = true
    const ofServices = ({ services, mapSizes, knobs }: CompileSettings) => [services, mapSizes, knobs.tunnelPort]
    if (!deepEqual(ofServices(old), ofServices(now))) this.#services()
    if (!deepEqual(old.nodes, now.nodes)) this.#nodes()
    const { nodePortAddresses: ports } = now.nodes
    if (!deepEqual([before.servers, old.nodes.nodePortAddresses], [after.servers, ports])) this.owners.add(API_SERVERS)
    if (old.interfacePrefix !== now.interfacePrefix) this.#pods()
  }

  #nodeChanged({ before, after }: Extract<ObjectChange, { readonly kind: 'Node' }>): void {
    const name = (after ?? before)?.name ?? ''
    if (name === this.#self) {
      if (before?.zone !== after?.zone || !deepEqual(before?.addresses, after?.addresses)) this.#services()
      if (!deepEqual(before?.addresses, after?.addresses)) this.owners.add(API_SERVERS)
      const hasOtherRanges = !deepEqual([before?.podCIDRs, before?.blocks], [after?.podCIDRs, after?.blocks])
      if (hasOtherRanges) this.#pods()
      if (hasOtherRanges || !deepEqual(before?.subnets, after?.subnets)) this.#nodes()
    } else if (![true, false].every((v4) => addressOf(before, v4) === addressOf(after, v4))) this.#moved.add(name)
  }

  #named({ before, after }: Exclude<ObjectChange, { readonly kind: 'EndpointSlice' }>): void {
    for (const object of [before, after]) if (object !== undefined) this.#add(object.kind, nameKey(object))
  }

  #services(): void {
    for (const key of this.#snapshot.services.keys()) this.#add('Service', key)
  }

  #nodes(): void {
    this.#add('Node', this.#self)
    for (const name of this.#snapshot.nodes.keys()) this.#add('Node', name)
  }

  #pods(): void {
    for (const pod of this.#snapshot.podsOn(this.#self)) this.#add('Pod', nameKey(pod))
  }

  #add(kind: Kind, key: string): void {
    this.owners.add(`${kind}/${key}`)
    if (kind === 'Service' && key === API_SERVER) this.owners.add(API_SERVERS)
  }
}

function addressOf(node: Node | undefined, v4: boolean): unknown {
  return node && nodeAddress(node, v4)
}

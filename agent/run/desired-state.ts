// SPDX-License-Identifier: Apache-2.0
/** From the store to the desired state: configuration and compiler in a row. Layer: agent. */
import type { Sliced } from '#lib/base/async/slices.ts'
import { protocolNumber, type Addr } from '#lib/base/ip.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { ownNode, type Node } from '#lib/model/node.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import type { Store } from '#lib/store/store.ts'
import { Compiler, type CompileInput, type Conflict } from '../compile/compile.ts'
import type { Configuration, DesiredChange } from '../compile/desired.ts'
import type { TruncatedRuleLists, QuotaExceeded } from '../compile/policy/policy-size.ts'
import { resolveConfig, type Resolved } from '../config/resolve.ts'
import { configurationsOf, type ConfigLayer } from '../config/layers.ts'
import type { FailsafePort } from '#lib/model/failsafe.ts'
import { wholeCidr } from '../compile/prefix-sets.ts'
import type { ApiServerAddress } from '../compile/api-server-addresses.ts'
import type { CompileSettings } from '../compile/settings.ts'
import { missingAddress, missingFamily } from './own-addresses.ts'

export interface DesiredStateOptions {
  /** this node's name */
  readonly node: string
  readonly store: Store
  /** of a rule list that programs look through; the most there are unless given */
  readonly blocks?: number
  /** where the source's own server is: neither policy nor a service must cut this node off from it */
  readonly servers?: () => readonly Place[]
  /** whether ways to other nodes' pods are ours to make; no: another plugin makes them */
  readonly makesRoutes?: boolean
  /** pods' addresses are ours to give */
  readonly servesPods?: boolean
  /** what goes before the objects' settings */
  readonly own?: readonly ConfigLayer[]
}

/** What one compilation came to: `compiled.desired` is for the data plane, the rest for reports. */
export interface CompileResult {
  /** a view of the sources' objects */
  readonly snapshot: Snapshot
  /** what changed of them since the result before; undefined: this is the first */
  readonly objects: readonly ObjectChange[] | undefined
  /** undefined: those of the result before are in force */
  readonly settings: Resolved | undefined
  /** why this node's own object is not in the sources; undefined: it is */
  readonly missingNode: string | undefined
  /** why this node has no address; undefined: it has one, or there is no such node */
  readonly missingAddress: string | undefined
  /** why it needs one of another family as well; undefined: it does not */
  readonly missingFamily: string | undefined
  /** undefined: the sources never had a Node of this name, so it is not known what is wanted */
  readonly compiled: Compiled | undefined
}

export interface Compiled {
  readonly desired: DesiredChange
  /** all addresses and ports that an object wants and another one has; undefined: as in the result before */
  readonly conflicts: readonly Conflict[] | undefined
  /** all rule lists that are longer than programs look */
  readonly truncated: readonly TruncatedRuleLists[]
  /** all policies that are closed for want of room */
  readonly quotaExceeded: readonly QuotaExceeded[]
}

type Place = Omit<ApiServerAddress, 'here'>

export class DesiredState {
  readonly #options: DesiredStateOptions
  readonly #compiler: Compiler
  #resync = false
  #revision: number | undefined
  #resolved: Resolved | undefined
  /** as it was last */
  #self: Node | undefined
  #conflicts: readonly Conflict[] = []
  #servers: readonly ApiServerAddress[] = []

  constructor(options: DesiredStateOptions) {
    this.#options = options
    this.#compiler = new Compiler(options.node, options.blocks)
  }

  /** Has the next {@link compile} give everything, changed or not. */
  requestResync(): void {
    this.#resync = true
  }

  /** What is wanted otherwise than before, the first time everything. undefined: nothing changed, or some source is not
   * synced. `held`: addresses of this node's interfaces. The store is to hold its snapshot until it is done. */
  *compile(held: () => readonly Addr[] = () => []): Sliced<CompileResult | undefined> {
    const { store } = this.#options
    if (!store.synced) return undefined
    const servers = this.#serversNow(held)
    const { revision } = store.snapshot
    if (!this.#resync && revision === this.#revision && deepEqual(servers, this.#servers)) return undefined
    this.#revision = revision
    this.#servers = servers
    const changes = store.takeChanges()
    const objects = this.#resolved === undefined ? undefined : changes
    const settings = this.#resolve(objects)
    const own = ownNode(store.snapshot, this.#options.node)
    this.#self = own ?? this.#self
    return {
      snapshot: store.snapshot,
      ...{ objects, settings },
      missingNode: this.#missingText(own),
      missingAddress: this.#self && missingAddress(this.#self),
      missingFamily: this.#self && missingFamily(this.#self, store.snapshot),
      compiled: yield* this.#compile(changes),
    }
  }

  /** What programs and maps the first {@link compile} will ask for; undefined: that has been, or cannot be yet. */
  firstConfiguration(): Configuration | undefined {
    const { store, node, own = [] } = this.#options
    const { snapshot } = store
    if (!store.synced || this.#revision !== undefined || ownNode(snapshot, node) === undefined) return undefined
    const { config } = resolveConfig([...own, ...configurationsOf(snapshot.felixConfigurations, node)], undefined)
    return this.#compiler.configuration(this.#inputOf(snapshot, config.compile))
  }

  /** What programs' numbers of rules mean, and how much there is of policy. */
  get policy(): Pick<Compiler['policy'], 'ruleNames' | 'size'> {
    return this.#compiler.policy
  }

  #serversNow(held: () => readonly Addr[]): readonly ApiServerAddress[] {
    const places = this.#options.servers?.() ?? []
    const addresses = places.length === 0 ? [] : held()
    return places.map(({ addr, port }) => ({ addr, port, here: addresses.includes(addr) }))
  }

  /** undefined: the settings are those of before. */
  #resolve(objects: readonly ObjectChange[] | undefined): Resolved | undefined {
    const { store, node, own = [] } = this.#options
    if (objects?.some(({ kind }) => kind === 'FelixConfiguration') === false) return undefined
    this.#resolved = resolveConfig([...own, ...configurationsOf(store.snapshot.felixConfigurations, node)], this.#resolved)
    return this.#resolved
  }

  *#compile(changes: readonly ObjectChange[]): Sliced<Compiled | undefined> {
    const snapshot = this.#snapshotWithSelf()
    if (snapshot === undefined || this.#resolved === undefined) return undefined
    const input = this.#inputOf(snapshot, this.#resolved.config.compile)
    const isWhole = this.#resync
    this.#resync = false
    const desired = yield* isWhole ? this.#compiler.compileAll(input) : this.#compiler.compileChanges(input, changes)
    const { cuts, noRoom } = this.#compiler.policy
    return { desired, conflicts: yield* this.#newConflicts(), truncated: cuts, quotaExceeded: noRoom }
  }

  #inputOf(snapshot: Snapshot, settings: CompileSettings): CompileInput {
    const { makesRoutes = true, servesPods = false } = this.#options
    return { snapshot, settings: withServers(settings, this.#servers), servers: this.#servers, makesRoutes, servesPods }
  }

  *#newConflicts(): Sliced<readonly Conflict[] | undefined> {
    const conflicts = yield* this.#compiler.conflicts()
    if (deepEqual(this.#conflicts, conflicts)) return undefined
    this.#conflicts = conflicts
    return conflicts
  }

  /** The sources' objects, with this node's own as it was last when it is gone; undefined when it never was. */
  #snapshotWithSelf(): Snapshot | undefined {
    const { snapshot } = this.#options.store
    const { node } = this.#options
    if (this.#self === undefined || ownNode(snapshot, node) !== undefined) return this.#self && snapshot
    return { ...snapshot, nodes: new Map([...snapshot.nodes, [node, this.#self]]) }
  }

  #missingText(own: Node | undefined): string | undefined {
    if (own !== undefined) return undefined
    return `there is no Node ${this.#options.node} in the sources${this.#self === undefined ? '' : ': its last good state stays in force'}`
  }
}

/** They are asked whatever the settings say. */
function withServers(settings: CompileSettings, servers: readonly Place[]): CompileSettings {
  if (servers.length === 0) return settings
  const { inbound, outbound } = settings.nodes.failsafes
  const asked = servers.map(({ addr, port }): FailsafePort => ({ protocol: protocolNumber('TCP'), port, net: wholeCidr(addr) }))
  return { ...settings, nodes: { ...settings.nodes, failsafes: { inbound, outbound: [...outbound, ...asked] } } }
}

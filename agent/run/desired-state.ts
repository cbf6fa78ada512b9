// SPDX-License-Identifier: Apache-2.0
/** From the sources to what is wanted of the data plane: store, configuration and compiler in a row. Layer: agent. */
import { protocolNumber, type Addr } from '#lib/base/ip.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { ownNode, type Node } from '#lib/model/node.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import type { Store } from '#lib/store/store.ts'
import { Compiler, type Conflict } from '../compile/compile.ts'
import type { DesiredChange } from '../compile/desired.ts'
import type { TruncatedRuleLists, QuotaExceeded } from '../compile/policy/policy-size.ts'
import { resolveConfig, type Resolved } from '../config/resolve.ts'
import { configurationsOf, type ConfigLayer } from '../config/layers.ts'
import type { FailsafePort } from '#lib/model/failsafe.ts'
import { wholeCidr } from '../compile/prefix-sets.ts'
import type { ApiServerAddress } from '../compile/api-server-addresses.ts'
import type { CompileSettings } from '../compile/settings.ts'

export interface DesiredStateOptions {
  /** this node's name */
  readonly node: string
  readonly store: Store
  /** of a line of policy rules that programs look through; the most there are unless given */
  readonly blocks?: number
  /** where the source's own server is: neither policy nor a service must cut this node off from it */
  readonly servers?: () => readonly Place[]
  /** addresses of this node's interfaces */
  readonly held?: () => readonly Addr[]
  /** whether ways to other nodes' pods are ours to make; no: another plugin makes them */
  readonly makesRoutes?: boolean
  /** pods' addresses are ours to give */
  readonly servesPods?: boolean
  /** what goes before the objects' settings */
  readonly own?: readonly ConfigLayer[]
  /** called with the first configuration, and with others later */
  readonly onConfig: (resolved: Resolved) => void
  /** what the objects changed to since the first time, before it is handed out */
  readonly onChanges?: (changes: readonly ObjectChange[]) => void
  /** called with what is in the sources before it is handed out, and what changed; the first time undefined */
  readonly onSnapshot?: (snapshot: Snapshot, changes: readonly ObjectChange[] | undefined) => void
  /** all addresses and ports that an object wants and another one has, each time that is different */
  readonly onConflicts?: (conflicts: readonly Conflict[]) => void
  /** lines of policy rules that are longer than programs look, each time they may be others */
  readonly onCuts?: (cuts: readonly TruncatedRuleLists[]) => void
  /** policies that are closed for want of room, each time they may be others */
  readonly onNoRoom?: (noRoom: readonly QuotaExceeded[]) => void
  /** why this node's own object is not there, undefined when it is; called when the sources are known, and when that
   * changes */
  readonly onNode?: (missing: string | undefined) => void
}

type Place = Omit<ApiServerAddress, 'here'>

export class DesiredState {
  readonly #options: DesiredStateOptions
  readonly #compiler: Compiler
  #revision: number | undefined
  #resolved: Resolved | undefined
  /** as it was last */
  #self: Node | undefined
  #missing: string | undefined
  #asked = false
  #conflicts: readonly Conflict[] = []
  #servers: readonly ApiServerAddress[] = []

  constructor(options: DesiredStateOptions) {
    this.#options = options
    this.#compiler = new Compiler(options.node, options.blocks)
  }

  /** What changed since the last call, the first time everything; undefined: nothing did, or it is not known: some
   * source is not synced, or there was no Node of this name yet. One that is deleted stays in force as it was. */
  take(everything: boolean): DesiredChange | undefined {
    const { store, node, own = [], onConfig, servers, makesRoutes = true, servesPods = false } = this.#options
    if (!store.synced) return undefined
    const places = servers?.() ?? []
    const held = places.length === 0 ? [] : (this.#options.held?.() ?? [])
    const now = places.map(({ addr, port }) => ({ addr, port, here: held.includes(addr) }))
    if (!everything && store.snapshot.revision === this.#revision && deepEqual(now, this.#servers)) return undefined
    this.#servers = now
    this.#revision = store.snapshot.revision
    const changes = store.takeChanges()
    this.#options.onSnapshot?.(store.snapshot, this.#resolved === undefined ? undefined : changes)
    if (this.#resolved !== undefined) this.#options.onChanges?.(changes)
    if (this.#resolved === undefined || changes.some((change) => change.kind === 'FelixConfiguration')) {
      this.#resolved = resolveConfig([...own, ...configurationsOf(store.snapshot.felixConfigurations, node)], this.#resolved)
      onConfig(this.#resolved)
    }
    const snapshot = this.#withSelf()
    if (snapshot === undefined) return undefined
    const input = { snapshot, settings: withServers(this.#resolved.config.compile, now), servers: now, makesRoutes, servesPods }
    const change = everything ? this.#compiler.compileAll(input) : this.#compiler.compileChanges(input, changes)
    this.#sayConflicts()
    this.#options.onCuts?.(this.#compiler.policy.cuts)
    this.#options.onNoRoom?.(this.#compiler.policy.noRoom)
    return change
  }

  #sayConflicts(): void {
    const conflicts = this.#compiler.conflicts()
    if (deepEqual(this.#conflicts, conflicts)) return
    this.#conflicts = conflicts
    this.#options.onConflicts?.(conflicts)
  }

  /** The sources' objects, with this node's own as it was last when it is gone; undefined when it never was. */
  #withSelf(): Snapshot | undefined {
    const { snapshot } = this.#options.store
    const { node } = this.#options
    // what its agent said of it outlives it for a moment
    const found = ownNode(snapshot, node)
    this.#self = found ?? this.#self
    this.#sayNode(found === undefined ? missingText(node, this.#self) : undefined)
    if (found !== undefined || this.#self === undefined) return found && snapshot
    return { ...snapshot, nodes: new Map([...snapshot.nodes, [node, this.#self]]) }
  }

  #sayNode(missing: string | undefined): void {
    if (this.#asked && missing === this.#missing) return
    this.#asked = true
    this.#missing = missing
    this.#options.onNode?.(missing)
  }

  /** What programs' numbers of rules mean, and how much there is of policy. */
  get policy(): Compiler['policy'] {
    return this.#compiler.policy
  }
}

/** They are asked whatever the settings say. */
function withServers(settings: CompileSettings, servers: readonly Place[]): CompileSettings {
  if (servers.length === 0) return settings
  const { inbound, outbound } = settings.nodes.failsafes
  const asked = servers.map(({ addr, port }): FailsafePort => ({ protocol: protocolNumber('TCP'), port, net: wholeCidr(addr) }))
  return { ...settings, nodes: { ...settings.nodes, failsafes: { inbound, outbound: [...outbound, ...asked] } } }
}

function missingText(node: string, before: Node | undefined): string {
  return `there is no Node ${node} in the sources${before === undefined ? '' : ': its last good state stays in force'}`
}

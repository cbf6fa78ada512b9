// SPDX-License-Identifier: Apache-2.0
/** From the sources to what is wanted of the data plane: store, configuration and compiler in a row. Layer: agent. */
import type { Store } from '#lib/store/store.ts'
import { Compiler } from './compile/compile.ts'
import type { DesiredChange } from './compile/desired.ts'
import { configurationsOf, resolveConfig, type Resolved } from './config/resolve.ts'

export interface WantedOptions {
  /** this node's name */
  readonly node: string
  readonly store: Store
  /** called with the first configuration, and with others later */
  readonly onConfig: (resolved: Resolved) => void
}

export class Wanted {
  readonly #options: WantedOptions
  readonly #compiler: Compiler
  #revision: number | undefined
  #resolved: Resolved | undefined

  constructor(options: WantedOptions) {
    this.#options = options
    this.#compiler = new Compiler(options.node)
  }

  /** What changed since the last call, the first time everything; undefined: nothing did, or some source is not synced. */
  take(everything: boolean): DesiredChange | undefined {
    const { store, node, onConfig } = this.#options
    if (!store.synced || (!everything && store.snapshot.revision === this.#revision)) return undefined
    this.#revision = store.snapshot.revision
    const changes = store.takeChanges()
    if (this.#resolved === undefined || changes.some((change) => change.kind === 'FelixConfiguration')) {
      this.#resolved = resolveConfig(configurationsOf(store.snapshot.felixConfigurations, node), this.#resolved)
      onConfig(this.#resolved)
    }
    // the addresses that interfaces have are the dataplane's business: what is wanted does not depend on what is there
    const input = { snapshot: store.snapshot, settings: this.#resolved.config.compile, selfAddresses: [] }
    return everything ? this.#compiler.compileAll(input) : this.#compiler.compileChanges(input, changes)
  }

  /** Addresses and ports that an object wants and another one has. */
  conflicts(): ReturnType<Compiler['conflicts']> {
    return this.#compiler.conflicts()
  }
}

// SPDX-License-Identifier: Apache-2.0
/** The policy of one node: what the store says → steps. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import { PolicyCompiler } from './compiler.ts'
import { PolicyFeed } from './object-to-update.ts'
import type { TruncatedRuleLists, QuotaExceeded, PolicySize } from './policy-size.ts'
import type { PolicyUpdate } from './policy-update.ts'
import type { PolicyStep } from './tables.ts'

export class PolicyPipeline {
  readonly #feed: PolicyFeed
  readonly #compiler: PolicyCompiler

  /** `node` is this node's name; `blocks` of a line are looked through by its programs. */
  constructor(node: string, blocks?: number) {
    this.#compiler = new PolicyCompiler(blocks)
    this.#feed = new PolicyFeed(node)
  }

  /** Once, before all others. */
  all(snapshot: Snapshot): Sliced<readonly PolicyStep[]> {
    return this.#compiler.slicedChange(this.#feed.all(snapshot))
  }

  /** These are in the snapshot already. */
  *changes(changes: readonly ObjectChange[], snapshot: Snapshot): Sliced<readonly PolicyStep[]> {
    const updates: PolicyUpdate[] = []
    for (const update of this.#feed.changes(changes, snapshot)) {
      updates.push(update)
      yield
    }
    return updates.length === 0 ? [] : yield* this.#compiler.slicedChange(updates)
  }

  /** by number */
  get ruleNames(): ReadonlyMap<number, string> {
    return this.#compiler.ruleNames
  }

  get cuts(): readonly TruncatedRuleLists[] {
    return this.#compiler.cuts
  }

  get noRoom(): readonly QuotaExceeded[] {
    return this.#compiler.noRoom
  }

  get size(): PolicySize {
    return this.#compiler.size
  }
}

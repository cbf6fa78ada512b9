// SPDX-License-Identifier: Apache-2.0
/** How many predicates there are in lists of lists, equal ones counted once. Layer: agent/compile (pure). */
import type { LivePredicate } from './identities.ts'

type List = readonly LivePredicate[]

export class AlikeLists {
  weight = 0
  readonly #times = new Map<List, number>()
  readonly #numbers = new Map<List, number>()
  readonly #known = new Set<string>()

  /** How often each list is in them. */
  get times(): ReadonlyMap<List, number> {
    return this.#times
  }

  add(lists: readonly List[]): void {
    const key = lists.map((list) => this.#numberOf(list)).join()
    if (this.#known.has(key)) return
    this.#known.add(key)
    for (const list of lists) {
      this.weight += list.length
      this.#times.set(list, (this.#times.get(list) ?? 0) + 1)
    }
  }

  #numberOf(list: List): number {
    const known = this.#numbers.get(list) ?? this.#numbers.size
    this.#numbers.set(list, known)
    return known
  }
}

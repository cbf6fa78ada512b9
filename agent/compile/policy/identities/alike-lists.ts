// SPDX-License-Identifier: Apache-2.0
/** How many predicates there are in lists of lists, equal ones counted once. Layer: agent/compile (pure). */
import type { LivePredicate } from './identities.ts'

type List = readonly LivePredicate[]

export class AlikeLists {
  weight = 0
  readonly #numbers = new Map<List, number>()
  readonly #known = new Set<string>()

  add(lists: readonly List[]): void {
    const key = lists.map((list) => this.#numberOf(list)).join()
    if (this.#known.has(key)) return
    this.#known.add(key)
    for (const { length } of lists) this.weight += length
  }

  #numberOf(list: List): number {
    const known = this.#numbers.get(list) ?? this.#numbers.size
    this.#numbers.set(list, known)
    return known
  }
}

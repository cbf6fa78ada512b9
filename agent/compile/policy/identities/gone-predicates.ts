// SPDX-License-Identifier: Apache-2.0
/** Predicates that nothing asks any more, to be taken out of all lists that have them at once: one by one would cost
 * the square of what a policy asks. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import type { LivePredicate } from './identities.ts'

/** Its list is ascending. */
interface Owner {
  atoms: LivePredicate[]
}

export class GonePredicates {
  readonly #gone = new Set<LivePredicate>()
  readonly #owners = new Set<Owner>()

  add(predicate: LivePredicate, owner: Owner): void {
    this.#gone.add(predicate)
    this.#owners.add(owner)
  }

  *takeOut(): Sliced<void> {
    for (const owner of this.#owners) {
      owner.atoms = owner.atoms.filter((atom) => !this.#gone.has(atom))
      yield
    }
    this.#gone.clear()
    this.#owners.clear()
  }
}

/** Of an ascending list. */
export function hasPredicate(atoms: readonly LivePredicate[], { index }: LivePredicate): boolean {
  let [from, to] = [0, atoms.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((atoms[middle]?.index ?? index) < index) from = middle + 1
    else to = middle
  }
  return atoms[from]?.index === index
}

// SPDX-License-Identifier: Apache-2.0
/** What the compiler's rulesets say of identities, by the predicates that they ask. Layer: agent/compile (pure). */
import type { IdentityMove } from '../identities/address-changes.ts'
import type { Identities } from '../identities/identities.ts'
import type { LiveRulesets } from '../rulesets/rulesets.ts'
import type { SetId } from '../tables.ts'
import type { RulesetView } from './plan.ts'

/** Of one change: it remembers what tells identities apart. */
export class LiveView implements RulesetView<IdentityMove> {
  readonly #sets: LiveRulesets
  readonly #identities: Identities
  readonly #differences = new Map<string, ReadonlySet<string>>()

  constructor(sets: LiveRulesets, identities: Identities) {
    this.#sets = sets
    this.#identities = identities
  }

  tellsApart(rulesets: ReadonlySet<SetId>, move: IdentityMove): boolean {
    return [...this.#sets.asking(this.#difference(move))].some(({ compiled }) => rulesets.has(compiled.id))
  }

  tellsOwnApart(ruleset: SetId, move: IdentityMove): boolean {
    const own = this.#sets.at(ruleset)?.compiled.own
    return own !== undefined && [...this.#difference(move)].some((predicate) => own.atoms.has(predicate))
  }

  between({ was, now }: IdentityMove): number {
    return this.#identities.between(was, now).id
  }

  twinOf(ruleset: SetId): SetId {
    return this.#sets.twinOf(ruleset).compiled.id
  }

  /** Keys of the predicates that are true of one of the two alone. */
  #difference({ was, now }: IdentityMove): ReadonlySet<string> {
    const key = `${was.id} ${now.id}`
    const known = this.#differences.get(key)
    if (known !== undefined) return known
    const difference = new Set([...was.isTrue].filter((predicate) => !now.isTrue.has(predicate)))
    for (const predicate of now.isTrue) if (!was.isTrue.has(predicate)) difference.add(predicate)
    this.#differences.set(key, difference)
    return difference
  }
}

// SPDX-License-Identifier: Apache-2.0
/** The lines of each group of local endpoints. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { groupRuleList, SLOTS } from './groups.ts'
import type { Slot } from './groups.ts'
import { isOverfullLine, type RuleList } from './rule-list.ts'
import type { GroupLines, Members } from '../rulesets/endpoint-groups.ts'
import type { Rulebook } from './rulebook.ts'
import { portsText } from '../identities/endpoint-profiles.ts'

/** As many lines as groups have, and again as many of groups that are gone. */
const LINES_A_GROUP = 16
const LINES_SPARE = 100

export class GroupRuleLists {
  readonly #rules: Rulebook
  readonly #blocks: number
  /** of groups that the same policies select, as long as no rule changes */
  readonly #known = new Map<string, RuleList | undefined>()

  /** `blocks` of a line are looked through */
  constructor(rules: Rulebook, blocks: number) {
    this.#rules = rules
    this.#blocks = blocks
  }

  /** Some rule has changed. */
  forget(): void {
    this.#known.clear()
  }

  /** Forgets lines of groups that are gone, now and then. */
  trim(groups: number): void {
    if (this.#known.size > LINES_A_GROUP * groups + LINES_SPARE) this.#known.clear()
  }

  /** `isOverfull`: the namespace has so many rules that it is closed, whatever else there is. No more of them are
   * made. */
  *of(group: Members, isOverfull: (namespace: string) => boolean): Sliced<GroupLines> {
    const isStagedToo = group.policies.some((policy) => policy.staged !== undefined || !this.#rules.isStaged(policy))
    const lines = new Map<string, RuleList>()
    for (const [name, slot] of Object.entries<Slot>(SLOTS[group.kind])) {
      const real = yield* this.#lineOf(group, { slot, staged: false, isOverfull })
      const staged = isStagedToo ? yield* this.#lineOf(group, { slot, staged: true, isOverfull }) : real
      if (real !== undefined) lines.set(name, real)
      if (staged !== undefined) lines.set(stagedName(name), staged)
    }
    return lines
  }

  *#lineOf(group: Members, { slot, staged, isOverfull }: LineQuery): Sliced<RuleList | undefined> {
    const { kind, ports, profiles, policies } = group
    const isIn = staged ? (policy: Policy) => this.#rules.isStaged(policy) : (policy: Policy) => policy.staged === undefined
    const place = [kind, slot.direction, slot.end, slot.tiers, slot.scopes.join(), staged]
    const key = [...place, portsText(ports), profiles.join(), ...policies.map(refText)].join('\n')
    if (this.#known.has(key)) return this.#known.get(key)
    const line = yield* groupRuleList({ group, slot, isIn, isOverfull, blocks: this.#blocks }, this.#rules)
    if (line === undefined || !isOverfullLine(line)) this.#known.set(key, line)
    return line
  }
}

interface LineQuery {
  readonly slot: Slot
  readonly staged: boolean
  readonly isOverfull: (namespace: string) => boolean
}

/** Where the set is that would be in the place of another if staged policies were real. */
export function stagedName(name: string): string {
  return `staged ${name}`
}

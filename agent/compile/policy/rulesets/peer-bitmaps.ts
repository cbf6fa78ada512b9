// SPDX-License-Identifier: Apache-2.0
/** Which rules of a line an address meets. Layer: agent/compile (pure). */
import { RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import type { Predicate, Condition } from '../identities/predicates.ts'
import { BitDraft, wordsFor } from './bits.ts'
import type { Bits } from './bits.ts'

/** What the rules of a line ask of one end's address. */
export interface SideTable {
  /** by key */
  readonly atoms: ReadonlyMap<string, Predicate>
  /** by block: for addresses of which nothing is true */
  readonly base: readonly Bits[]
  /** by key of an atom: numbers of the rules that ask it */
  readonly askers: ReadonlyMap<string, readonly number[]>
  /** by number of the rule */
  readonly conditions: readonly (readonly Condition[])[]
}

/** From what each rule asks, block by block. */
export function sideOf(blocks: readonly (readonly (readonly Condition[])[])[]): SideTable {
  const conditions = blocks.flat()
  const atoms = new Map<string, Predicate>()
  const askers = new Map<string, number[]>()
  for (const [rule, all] of conditions.entries())
    for (const { atom } of all) {
      atoms.set(atom.key, atom)
      const list = askers.get(atom.key)
      if (list === undefined) askers.set(atom.key, [rule])
      else if (list.at(-1) !== rule) list.push(rule)
    }
  const base = blocks.map((rules) => {
    const draft = new BitDraft(wordsFor(rules.length))
    for (const [bit, all] of rules.entries())
      draft.put(
        bit,
        all.every(({ holds }) => !holds),
      )
    return draft.toBits()
  })
  return { atoms, base, askers, conditions }
}

/** By block, for an address of which exactly these atoms are true; undefined where the block's base says the same. */
export function bitsOf(side: SideTable, isTrue: ReadonlySet<string>): readonly (Bits | undefined)[] {
  const drafts = new Map<number, BitDraft>()
  for (const key of side.askers.size < isTrue.size ? side.askers.keys() : isTrue) {
    if (!isTrue.has(key)) continue
    for (const rule of side.askers.get(key) ?? []) {
      const block = Math.floor(rule / RULES_PER_BLOCK)
      const base = side.base[block] ?? ''
      const draft = drafts.get(block) ?? new BitDraft(base.length / 8, base)
      drafts.set(block, draft)
      draft.put(
        rule % RULES_PER_BLOCK,
        (side.conditions[rule] ?? []).every(({ atom, holds }) => isTrue.has(atom.key) === holds),
      )
    }
  }
  return side.base.map((base, block) => {
    const bits = drafts.get(block)?.toBits()
    return bits === base ? undefined : bits
  })
}

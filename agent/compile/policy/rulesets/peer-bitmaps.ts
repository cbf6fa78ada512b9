// SPDX-License-Identifier: Apache-2.0
/** Which rules of a line an address meets. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
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
  /** keys of atoms that many rules ask */
  readonly often: readonly string[]
  /** by those of them that are true: what is to be asked once and not for each address */
  readonly known: Map<string, readonly Bits[]>
}

const MANY_ASKERS = 64

/** From what each rule asks, block by block. */
export function* sideOf(blocks: readonly (readonly (readonly Condition[])[])[]): Sliced<SideTable> {
  const conditions = blocks.flat()
  const atoms = new Map<string, Predicate>()
  const askers = new Map<string, number[]>()
  for (const [rule, all] of conditions.entries()) {
    for (const { atom } of all) {
      atoms.set(atom.key, atom)
      const list = askers.get(atom.key)
      if (list === undefined) askers.set(atom.key, [rule])
      else if (list.at(-1) !== rule) list.push(rule)
    }
    yield
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
  const often = [...askers].flatMap(([key, rules]) => (rules.length >= MANY_ASKERS ? [key] : []))
  return { atoms, base, askers, conditions, often, known: new Map() }
}

/** By block, for an address of which exactly these atoms are true; undefined where the block's base says the same. */
export function bitsOf(side: SideTable, isTrue: ReadonlySet<string>): readonly (Bits | undefined)[] {
  const often = side.often.filter((key) => isTrue.has(key))
  const start = often.length === 0 ? side.base : bitsOfOften(side, often)
  const seldom = (side.askers.size < isTrue.size ? [...side.askers.keys()] : [...isTrue]).filter(
    (key) => isTrue.has(key) && !isOften(side, key),
  )
  const all = askedAgain(side, { start, keys: seldom, isTrue })
  return side.base.map((base, block) => (all[block] === base ? undefined : all[block]))
}

/** The same of those alone that many rules ask: most addresses have these in common. */
function bitsOfOften(side: SideTable, often: readonly string[]): readonly Bits[] {
  const name = often.join('\n')
  const known = side.known.get(name)
  if (known !== undefined) return known
  const bits = askedAgain(side, { start: side.base, keys: often, isTrue: new Set(often) })
  side.known.set(name, bits)
  return bits
}

function isOften({ askers }: SideTable, key: string): boolean {
  return (askers.get(key)?.length ?? 0) >= MANY_ASKERS
}

interface Asking {
  /** by block */
  readonly start: readonly Bits[]
  readonly keys: readonly string[]
  readonly isTrue: ReadonlySet<string>
}

/** `start`, with what becomes of the rules that ask one of these. */
function askedAgain(side: SideTable, { start, keys, isTrue }: Asking): readonly Bits[] {
  const drafts = new Map<number, BitDraft>()
  const known = new Set<number>()
  for (const key of keys)
    for (const rule of side.askers.get(key) ?? []) {
      // of a rule that asks much, all is looked through once
      if (known.has(rule)) continue
      known.add(rule)
      const block = Math.floor(rule / RULES_PER_BLOCK)
      const before = start[block] ?? ''
      const draft = drafts.get(block) ?? new BitDraft(before.length / 8, before)
      drafts.set(block, draft)
      draft.put(
        rule % RULES_PER_BLOCK,
        (side.conditions[rule] ?? []).every(({ atom, holds }) => isTrue.has(atom.key) === holds),
      )
    }
  return start.map((before, block) => drafts.get(block)?.toBits() ?? before)
}

// SPDX-License-Identifier: Apache-2.0
/** What rulesets say of identities, by their rows alone: those in the kernel before, those of the whole after.
 * Layer: agent/compile (pure). */
import { DIMENSION_OWN, DIMENSION_PEER } from '#lib/base/bpf-constants.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { betweenId } from '../identities/identities.ts'
import { twinId } from '../rulesets/rulesets.ts'
import type { PolicyRowOf, SetId, SetRow } from '../tables.ts'
import type { Move, RulesetView } from './plan.ts'

type BitsRow = PolicyRowOf<'bits'>
/** by ruleset, then by identity */
type RowIndex = ReadonlyMap<SetId, ReadonlyMap<number, readonly BitsRow[]>>

export interface RowViewOptions {
  readonly before: readonly BitsRow[]
  readonly after: readonly SetRow[]
  /** identities in use */
  readonly taken: Iterable<number>
}

export class RowView implements RulesetView<Move> {
  readonly #before: RowIndex
  readonly #after: RowIndex
  readonly #rows: readonly SetRow[]
  /** rulesets that the whole has */
  readonly #wanted: ReadonlySet<SetId>
  readonly #taken: Set<number>
  readonly #between: { readonly id: number; readonly was: number; readonly now: number }[] = []
  readonly #twins = new Map<SetId, SetId>()

  constructor({ before, after, taken }: RowViewOptions) {
    this.#rows = after
    this.#wanted = new Set(after.map(({ key }) => key.set))
    const bits = after.filter((row) => row.table === 'bits')
    this.#before = indexOf(before)
    this.#after = indexOf(bits)
    this.#taken = new Set([...taken, ...[...before, ...bits].map(({ key }) => key.class)])
  }

  /** Rulesets that the whole has no more. */
  get leaving(): readonly SetId[] {
    return [...this.#before.keys()].filter((set) => !this.#wanted.has(set))
  }

  tellsApart(rulesets: ReadonlySet<SetId>, { was, now }: Move): boolean {
    if (was.id === now.id) return false
    // one that stays is told of new identities before any address has them
    const then = (set: SetId): RowIndex => (this.#wanted.has(set) ? this.#after : this.#before)
    return [...rulesets].some((set) => !isSame(rowsOf(this.#before, set, was.id), rowsOf(then(set), set, now.id)))
  }

  tellsOwnApart(set: SetId, { was, now }: Move): boolean {
    const own = (rows: readonly BitsRow[]): readonly BitsRow[] => rows.filter(({ key }) => key.dimension === DIMENSION_OWN)
    return !isSame(own(rowsOf(this.#before, set, was.id)), own(rowsOf(this.#after, set, now.id)))
  }

  between({ was, now }: Move): number {
    const id = betweenId(was.id, now.id, (one) => this.#taken.has(one))
    this.#taken.add(id)
    this.#between.push({ id, was: was.id, now: now.id })
    return id
  }

  twinOf(set: SetId): SetId {
    const twin = twinId(set, (id) => id === set || this.#before.has(id) || this.#wanted.has(id))
    this.#twins.set(set, twin)
    return twin
  }

  /** Rows of twins, and what rulesets say of the identities between: those that are left say it of the old ones. */
  extraRows(left: ReadonlySet<SetId>): readonly SetRow[] {
    const rows: SetRow[] = []
    for (const { id, was, now } of this.#between) {
      for (const set of left) rows.push(...said(id, rowsOf(this.#before, set, was)))
      for (const set of this.#after.keys()) if (!left.has(set)) rows.push(...said(id, rowsOf(this.#after, set, now)))
      for (const [set, twin] of this.#twins) rows.push(...said(id, rowsOf(this.#after, set, now)).map((row) => named(twin, row)))
    }
    for (const row of this.#rows) {
      const twin = this.#twins.get(row.key.set)
      if (twin !== undefined) rows.push(named(twin, row))
    }
    return rows
  }
}

/** Only of what is about identities. */
function indexOf(rows: readonly BitsRow[]): RowIndex {
  const index = new Map<SetId, Map<number, BitsRow[]>>()
  for (const row of rows) {
    const { set, class: identity, dimension } = row.key
    const ofSet = index.get(set) ?? new Map<number, BitsRow[]>()
    index.set(set, ofSet)
    if (dimension === DIMENSION_PEER || dimension === DIMENSION_OWN) ofSet.set(identity, [...(ofSet.get(identity) ?? []), row])
  }
  return index
}

function rowsOf(index: RowIndex, set: SetId, identity: number): readonly BitsRow[] {
  return index.get(set)?.get(identity) ?? []
}

/** The same of another identity. */
function said(identity: number, rows: readonly BitsRow[]): readonly BitsRow[] {
  return rows.map((row) => ({ ...row, key: { ...row.key, class: identity } }))
}

function isSame(some: readonly BitsRow[], others: readonly BitsRow[]): boolean {
  if (some.length !== others.length) return false
  return some.every(({ key, value }) =>
    others.some((other) => other.key.block === key.block && other.key.dimension === key.dimension && deepEqual(other.value, value)),
  )
}

function named<R extends SetRow>(set: SetId, row: R): R {
  return { ...row, key: { ...row.key, set } }
}

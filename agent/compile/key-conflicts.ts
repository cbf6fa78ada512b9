// SPDX-License-Identifier: Apache-2.0
/** Which owner holds a key that several want: the same one in whatever order they came. Layer: agent/compile (pure).
 *
 * The dataplane elects owners as well (`KeyOwners`), by another rule. Here objects contend, by rank, age and name;
 * losers are compiled again without the key, and told. There rows contend that are right by themselves, those of the
 * node's own devices beside those of objects: the loser's row stays known, and is written when the winner goes. */
import { inBatches, type Sliced } from '#lib/base/async/slices.ts'
import { compareNumbers, compareText } from '#lib/base/order.ts'

export interface Claim {
  readonly key: string
  /** lower ranks hold */
  readonly rank: number
  /** Of two claims with the same rank, the older one holds; then the owner whose name sorts first. undefined: younger
   * than every claim with a time. */
  readonly since?: number | undefined
}

export interface Verdict {
  /** keys of the asking owner that another holds */
  readonly lost: ReadonlySet<string>
  /** other owners that hold something now that they did not before, or no longer */
  readonly disturbed: ReadonlySet<string>
}

interface Claimant extends Omit<Claim, 'key'> {
  readonly owner: string
}

export class KeyConflicts {
  /** best first */
  readonly #claimants = new Map<string, readonly Claimant[]>()
  readonly #keysOf = new Map<string, readonly string[]>()

  /** The owner that holds the key; undefined: no owner wants it. */
  holder(key: string): string | undefined {
    return this.#claimants.get(key)?.[0]?.owner
  }

  /** Replaces all claims of this owner. */
  *set(owner: string, claims: readonly Claim[]): Sliced<Verdict> {
    const disturbed = new Set<string>()
    const lost = new Set<string>()
    const wanted = new Map(claims.map(({ key, ...claim }) => [key, { ...claim, owner }]))
    yield* inBatches(this.#keysOf.get(owner) ?? [], (key) => {
      if (!wanted.has(key)) this.#change(key, { owner, claimant: undefined, disturbed })
    })
    yield* inBatches(wanted, ([key, claimant]) => {
      const holder = this.#change(key, { owner, claimant, disturbed })
      if (holder !== owner) lost.add(key)
    })
    if (wanted.size === 0) this.#keysOf.delete(owner)
    else this.#keysOf.set(owner, [...wanted.keys()])
    return { lost, disturbed }
  }

  /** Returns the owner that holds the key after the change. */
  #change(
    key: string,
    change: { readonly owner: string; readonly claimant: Claimant | undefined; readonly disturbed: Set<string> },
  ): string | undefined {
    const before = this.#claimants.get(key) ?? []
    const others = before.filter((claimant) => claimant.owner !== change.owner)
    const after = change.claimant === undefined ? others : withClaimant(others, change.claimant)
    if (after.length === 0) this.#claimants.delete(key)
    else this.#claimants.set(key, after)
    const from = before[0]?.owner
    const to = after[0]?.owner
    if (from !== to) for (const other of [from, to]) if (other !== undefined && other !== change.owner) change.disturbed.add(other)
    return to
  }
}

/** `others` are in order. */
function withClaimant(others: readonly Claimant[], claimant: Claimant): readonly Claimant[] {
  const at = others.findIndex((other) => compareClaimants(other, claimant) > 0)
  return others.toSpliced(at < 0 ? others.length : at, 0, claimant)
}

function compareClaimants(a: Claimant, b: Claimant): number {
  return a.rank - b.rank || compareNumbers(a.since ?? Infinity, b.since ?? Infinity) || compareText(a.owner, b.owner)
}

// SPDX-License-Identifier: Apache-2.0
/** Which owner's row counts when several want the same key: of those that are right by themselves, while `KeyConflicts`
 * of the compiler decides among objects. Layer: agent/dataplane (pure data structure). */
import { by, compareText, type Compare } from '#lib/base/order.ts'
import type { Entry } from '../../maps/byte-rows.ts'

/** Where the winning rows go. */
export interface WantedRow {
  want(key: string, value: string): void
  unwant(key: string): void
  wanted(key: string): string | undefined
}

/** A row that an owner wants, under some key. */
export interface Claim {
  readonly owner: string
  readonly value: string
}

/** Per owner only the keys are kept; values live in `WantedRow`, and here only those of losers. Every call costs in
 * proportion to the owner's rows. */
export class KeyOwners {
  readonly #wanted: WantedRow
  readonly #compare: Compare<Claim>
  readonly #keys = new Map<string, readonly string[]>()
  readonly #winner = new Map<string, string>()
  readonly #losers = new Map<string, Map<string, string>>()

  /** `compare`: of two claims to a key the first counts; by default the order of owners */
  constructor(wanted: WantedRow, compare: Compare<Claim> = by(({ owner }) => owner, compareText)) {
    this.#wanted = wanted
    this.#compare = compare
  }

  /** Replaces all of the owner's rows; none removes the owner. Of two rows with the same key the later counts. */
  setFragment(owner: string, entries: Iterable<Entry>): void {
    const held = this.#keys.get(owner) ?? []
    const next = new Map(entries)
    // most owners have rows in one table of nine
    if (held.length === 0 && next.size === 0) return
    const keys: string[] = []
    for (const key of held) {
      // the string that is already held is kept, so that no key lives twice
      if (next.has(key)) keys.push(key)
      else this.#release(owner, key)
    }
    const kept = new Set(keys)
    for (const [key, value] of next) {
      if (!kept.has(key)) keys.push(key)
      this.#claim(owner, key, value)
    }
    if (keys.length === 0) this.#keys.delete(owner)
    else this.#keys.set(owner, keys)
  }

  /** Removes every owner that is not named. */
  complete(owners: ReadonlySet<string>): void {
    for (const owner of [...this.#keys.keys()]) if (!owners.has(owner)) this.setFragment(owner, [])
  }

  #claim(owner: string, key: string, value: string): void {
    const holder = this.#winner.get(key)
    const losers = this.#losers.get(key)
    if (holder === undefined || (holder === owner && losers === undefined)) {
      if (holder === undefined) this.#winner.set(key, owner)
      this.#wanted.want(key, value)
      return
    }
    const claims = losers ?? new Map<string, string>()
    if (holder !== owner) claims.set(holder, this.#wanted.wanted(key) ?? '')
    claims.set(owner, value)
    this.#losers.set(key, claims)
    this.#elect(key, claims)
  }

  #release(owner: string, key: string): void {
    const losers = this.#losers.get(key)
    if (this.#winner.get(key) === owner) {
      if (losers !== undefined) {
        this.#elect(key, losers)
        return
      }
      this.#winner.delete(key)
      this.#wanted.unwant(key)
    } else if (losers?.delete(owner) === true && losers.size === 0) this.#losers.delete(key)
  }

  /** One of these claims counts from now on; the others stay among the losers. */
  #elect(key: string, claims: Map<string, string>): void {
    const all = Array.from(claims, ([owner, value]): Claim => ({ owner, value }))
    const { owner, value } = all.reduce((best, one) => (this.#compare(one, best) < 0 ? one : best))
    claims.delete(owner)
    if (claims.size === 0) this.#losers.delete(key)
    this.#winner.set(key, owner)
    if (this.#wanted.wanted(key) !== value) this.#wanted.want(key, value)
  }
}

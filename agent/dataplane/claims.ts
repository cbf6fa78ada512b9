// SPDX-License-Identifier: Apache-2.0
/** Which owner's row counts when several want the same key. Layer: agent/dataplane (pure data structure). */
import { compareText, sorted, type Compare } from '#lib/base/order.ts'
import type { Entry } from '../maps/text.ts'

/** Where the winning rows go. */
export interface Wanted {
  want(key: string, value: string): void
  unwant(key: string): void
  wanted(key: string): string | undefined
}

/** Per owner only the keys are kept; values live in `Wanted`, and here only those of losers. Every call costs in proportion to the owner's rows. */
export class Claims {
  readonly #wanted: Wanted
  readonly #compare: Compare<string>
  readonly #keys = new Map<string, readonly string[]>()
  readonly #winner = new Map<string, string>()
  readonly #losers = new Map<string, Map<string, string>>()

  /** `compare`: of two owners the first has what both want */
  constructor(wanted: Wanted, compare: Compare<string> = compareText) {
    this.#wanted = wanted
    this.#compare = compare
  }

  /** Replaces all of the owner's rows; none removes the owner. Of two rows with the same key the later counts. */
  setFragment(owner: string, entries: Iterable<Entry>): void {
    const next = new Map(entries)
    const keys: string[] = []
    for (const key of this.#keys.get(owner) ?? []) {
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
    if (holder === undefined || holder === owner) {
      if (holder === undefined) this.#winner.set(key, owner)
      this.#wanted.want(key, value)
      return
    }
    const losers = this.#losers.get(key) ?? new Map<string, string>()
    this.#losers.set(key, losers)
    if (this.#compare(holder, owner) < 0) {
      losers.set(owner, value)
      return
    }
    losers.set(holder, this.#wanted.wanted(key) ?? '')
    this.#winner.set(key, owner)
    this.#wanted.want(key, value)
  }

  #release(owner: string, key: string): void {
    const losers = this.#losers.get(key)
    if (this.#winner.get(key) !== owner) {
      losers?.delete(owner)
    } else {
      const [heir] = losers === undefined ? [] : sorted(losers, (a, b) => this.#compare(a[0], b[0]))
      if (heir === undefined) {
        this.#winner.delete(key)
        this.#wanted.unwant(key)
      } else {
        losers?.delete(heir[0])
        this.#winner.set(key, heir[0])
        this.#wanted.want(key, heir[1])
      }
    }
    if (losers?.size === 0) this.#losers.delete(key)
  }
}

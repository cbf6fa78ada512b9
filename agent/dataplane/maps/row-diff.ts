// SPDX-License-Identifier: Apache-2.0
/** Desired against actual for one keyed table, each row held once. Layer: agent/dataplane (pure data structure). */
import type { Entry } from '../../maps/byte-rows.ts'
import type { WantedRow } from './key-owners.ts'

/** What a read-back found other than believed. All zero: nothing was touched behind our back. */
export interface Drift {
  /** believed written, but gone */
  readonly missing: number
  /** believed written, but of another value */
  readonly changed: number
  /** in the kernel, but not known to be there */
  readonly foreign: number
}

export const NO_DRIFT: Drift = { missing: 0, changed: 0, foreign: 0 }

/** A wanted row is either `synced` (the kernel has it) or in `updates`; `stale` are the kernel's rows that are not
 * wanted as they are. */
export class RowDiff implements WantedRow {
  #synced = new Map<string, string>()
  #updates = new Map<string, string>()
  readonly #stale = new Map<string, string>()

  want(key: string, value: string): void {
    const written = this.#synced.get(key)
    if (written === value) return
    if (written !== undefined) {
      this.#synced.delete(key)
      this.#stale.set(key, written)
    }
    if (this.#stale.get(key) === value) this.#settle(key, value)
    else this.#updates.set(key, value)
  }

  unwant(key: string): void {
    this.#updates.delete(key)
    const actual = this.#synced.get(key)
    if (actual === undefined) return
    this.#synced.delete(key)
    this.#stale.set(key, actual)
  }

  wanted(key: string): string | undefined {
    return this.#synced.get(key) ?? this.#updates.get(key)
  }

  /** The kernel's value as far as we know. */
  actual(key: string): string | undefined {
    return this.#synced.get(key) ?? this.#stale.get(key)
  }

  /** Rows to write, oldest wish first, replacements included. May be told `written` while it is walked. */
  updates(): ReadonlyMap<string, string> {
    return this.#updates
  }

  /** Those rows to write whose key the kernel has with another value. May be told `written` while it is walked. */
  *replacements(): Generator<Entry> {
    for (const key of this.#stale.keys()) {
      const value = this.#updates.get(key)
      if (value !== undefined) yield [key, value]
    }
  }

  /** Keys to delete; those that are only to be overwritten are not among them. May be told `removed` while it is
   * walked. */
  *deletes(): Generator<string> {
    for (const key of this.#stale.keys()) if (!this.#updates.has(key)) yield key
  }

  /** The value that is still to be written. */
  toWrite(key: string): string | undefined {
    return this.#updates.get(key)
  }

  /** Is the kernel's row to be deleted? */
  isExcess(key: string): boolean {
    return this.#stale.has(key) && !this.#updates.has(key)
  }

  /** The kernel's rows as far as we know. */
  actuals(): ReadonlyMap<string, string> {
    return new Map([...this.#synced, ...this.#stale])
  }

  /** Keys of rows that are wanted. */
  *wantedKeys(): Generator<string> {
    yield* this.#synced.keys()
    yield* this.#updates.keys()
  }

  /** Rows that are wanted. */
  get size(): number {
    return this.#synced.size + this.#updates.size
  }

  /** Rows that the kernel has as far as we know. What is wanted does not change it. */
  get known(): number {
    return this.#synced.size + this.#stale.size
  }

  get pendingUpdates(): number {
    return this.#updates.size
  }

  get pendingDeletes(): number {
    let count = 0
    for (const key of this.#stale.keys()) if (!this.#updates.has(key)) count++
    return count
  }

  /** The kernel has taken this row. */
  written(key: string, value: string): void {
    if (this.#updates.get(key) === value) this.#settle(key, value)
    else if (this.#synced.get(key) !== value) this.#stale.set(key, value)
  }

  /** The kernel has no row of this key any more. */
  removed(key: string): void {
    this.#stale.delete(key)
  }

  /** Takes the whole of what the kernel has, which it may walk twice; keys are distinct. */
  readBack(actual: Iterable<Entry>): Drift {
    if (this.known === 0 && this.#isPending(actual)) {
      // a restart to which nothing has changed: no row is moved by itself
      ;[this.#synced, this.#updates] = [this.#updates, this.#synced]
      return { ...NO_DRIFT, foreign: this.#synced.size }
    }
    const [synced, stale] = [new Map(this.#synced), new Map(this.#stale)]
    for (const [key, value] of synced) this.#updates.set(key, value)
    this.#synced.clear()
    this.#stale.clear()
    const found = { changed: 0, foreign: 0 }
    let kept = 0
    for (const [key, value] of actual) {
      const believed = synced.get(key)
      if (believed === value) kept++
      else if (believed !== undefined) found.changed++
      else if (!stale.has(key)) found.foreign++
      const wanted = this.#updates.get(key)
      // our own string is kept, the one just read may go
      if (wanted === value) this.#settle(key, wanted)
      else this.#stale.set(key, value)
    }
    return { ...found, missing: synced.size - kept - found.changed }
  }

  /** Are these the rows to write, all of them and no others? */
  #isPending(actual: Iterable<Entry>): boolean {
    let count = 0
    for (const [key, value] of actual) {
      if (this.#updates.get(key) !== value) return false
      count++
    }
    return count === this.#updates.size
  }

  #settle(key: string, value: string): void {
    this.#updates.delete(key)
    this.#stale.delete(key)
    this.#synced.set(key, value)
  }
}

// SPDX-License-Identifier: Apache-2.0
/** One map kept equal to what its owners want. Layer: agent/dataplane. */
import { setImmediate } from 'node:timers/promises'
import { MapError } from '#lib/base/errors.ts'
import type { Entry } from '../../maps/byte-rows.ts'
import { BATCH_ROWS, Pass, inBatches, pack, rowsOfBatch } from './map-writer.ts'
import type { WantedRow } from './key-owners.ts'
import { KeyOwners } from './key-owners.ts'
import type { Drift } from './row-diff.ts'
import { RowDiff, NO_DRIFT } from './row-diff.ts'

/** What a table needs of a map; `BpfMap` has it. */
export interface TableMap {
  readonly keyBytes: number
  readonly valueBytes: number
  info(): { readonly name: string; readonly maxEntries: number }
  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): number
  deleteBatch(keys: Uint8Array, count: number): number
  dump(): Promise<{ readonly keys: Buffer; readonly values: Buffer; readonly count: number }>
}

/** What one pass of writing came to. Rows that failed stay pending; there is one error for each code that occurred. */
export interface Applied {
  readonly done: number
  readonly errors: readonly MapError[]
}

/** Whether a row is to wait for others. */
export type IsHeld = (entry: Entry) => boolean

/** rows that are compared in one turn of the event loop: about 2 ms */
const SLICE_ROWS = 4096

/** Not re-entrant: one loop reads back and applies; claims may change at any time between. Nothing is written before
 * the first read-back. */
export class MapTable {
  readonly #map: TableMap
  readonly #name: string
  readonly #delta = new RowDiff()
  readonly #claims: KeyOwners
  #known = false

  /** Of two owners the first by name has a row that both want. */
  constructor(map: TableMap) {
    this.#map = map
    this.#claims = new KeyOwners(this.#delta)
    this.#name = map.info().name
  }

  /** For rows that owners do not share: a caller of this must not use fragments. */
  get rows(): WantedRow {
    return this.#delta
  }

  /** What the kernel has as far as is known; undefined before the first read-back. */
  actual(): ReadonlyMap<string, string> | undefined {
    return this.#known ? this.#delta.actuals() : undefined
  }

  /** One row of that. */
  actualAt(key: string): string | undefined {
    return this.#delta.actual(key)
  }

  /** Keys of rows that are wanted. */
  wantedKeys(): Iterable<string> {
    return this.#delta.wantedKeys()
  }

  /** Keys of the kernel's rows that are not wanted. */
  excessKeys(): Iterable<string> {
    return this.#delta.deletes()
  }

  /** Brings these rows to what is wanted of them, in this order as far as all are written or all deleted, up to the
   * first that fails. */
  settle(named: readonly string[]): Applied {
    const keys = [...new Set(named)]
    const write = new Pass(this.#name, 'update', 1)
    const remove = new Pass(this.#name, 'delete', 1)
    if (!this.#ready(write)) return this.#applied(write, this.#delta.pendingUpdates)
    const updates = keys.flatMap((key): Entry[] => {
      const value = this.#delta.toWrite(key)
      return value === undefined ? [] : [[key, value]]
    })
    const rows = rowsOfBatch(this.#map.keyBytes + this.#map.valueBytes)
    const flushUpdates = (batch: readonly Entry[]): void => {
      this.#writeBatch(batch, write)
    }
    inBatches(updates, { flush: flushUpdates, pass: write, rows })
    if (write.failed) return this.#applied(write, this.#delta.pendingUpdates)
    const excess = keys.filter((key) => this.#delta.isExcess(key))
    const flushExcess = (batch: readonly string[]): void => {
      this.#deleteBatch(batch, remove)
    }
    inBatches(excess, { flush: flushExcess, pass: remove, rows: BATCH_ROWS })
    const { errors } = this.#applied(remove, this.#delta.pendingDeletes)
    return { done: write.done + remove.done, errors }
  }

  /** Replaces the owner's rows; keys and values as the codecs encode them. */
  setFragment(owner: string, entries: Iterable<Entry>): void {
    this.#claims.setFragment(owner, entries)
  }

  /** Removes the rows of every owner that is not named. */
  complete(owners: ReadonlySet<string>): void {
    this.#claims.complete(owners)
  }

  /** Rows that are wanted. */
  get size(): number {
    return this.#delta.size
  }

  /** Rows that the kernel has, as far as is known. */
  get known(): number {
    return this.#delta.known
  }

  get pending(): { readonly updates: number; readonly deletes: number } {
    return { updates: this.#delta.pendingUpdates, deletes: this.#delta.pendingDeletes }
  }

  /** Reads the whole map, for {@link readBack}. Throws MapError. */
  async read(): Promise<MapRead> {
    try {
      return new MapRead(await this.#map.dump(), this.#map)
    } catch (cause) {
      throw new MapError({ map: this.#name, op: 'read back', cause })
    }
  }

  /** Compares with the whole map, as it is or as it was read since the last write. What differs becomes pending; the
   * first answer counts all there is as foreign. Throws MapError. */
  async readBack(before?: MapRead): Promise<Drift> {
    const read = before ?? (await this.read())
    if (this.#known && (await this.#agrees(read))) return NO_DRIFT
    this.#known = true
    return this.#delta.readBack(read)
  }

  /** Rows to write. */
  pendingRows(): ReadonlyMap<string, string> {
    return this.#delta.updates()
  }

  /** Writes what is wanted and not there: first what replaces a row, for that needs no room. Rows that are to wait
   * stay pending. */
  applyUpdates(isHeld?: IsHeld): Applied {
    const pass = new Pass(this.#name, 'update')
    const flush = (batch: readonly Entry[]): void => {
      this.#writeBatch(batch, pass)
    }
    const rows = rowsOfBatch(this.#map.keyBytes + this.#map.valueBytes)
    if (this.#ready(pass)) {
      inBatches(released(this.#delta.replacements(), isHeld), { flush, pass, rows })
      inBatches(released(this.#delta.updates(), isHeld), { flush, pass, rows })
    }
    return this.#applied(pass, this.#delta.pendingUpdates)
  }

  /** Deletes what is there and not wanted, but for rows that are to wait. */
  applyDeletes(isHeld?: (key: string) => boolean): Applied {
    const pass = new Pass(this.#name, 'delete')
    const flush = (batch: readonly string[]): void => {
      this.#deleteBatch(batch, pass)
    }
    if (this.#ready(pass)) inBatches(released(this.#delta.deletes(), isHeld), { flush, pass, rows: BATCH_ROWS })
    return this.#applied(pass, this.#delta.pendingDeletes)
  }

  /** Distinct rows, all known, as many as known: then they are the same. The event loop gets its turn in between,
   * for what is wanted may change meanwhile, but not what is known. */
  async #agrees(read: MapRead): Promise<boolean> {
    for (let from = 0; from < read.count; from += SLICE_ROWS) {
      for (const [key, value] of read.entries(from, from + SLICE_ROWS)) if (this.#delta.actual(key) !== value) return false
      await setImmediate()
    }
    return read.count === this.#delta.known
  }

  #ready(pass: Pass): boolean {
    if (!this.#known) pass.refuse('nothing was read back yet')
    return this.#known
  }

  #applied(pass: Pass, pending: number): Applied {
    return { done: pass.done, errors: pass.failed ? pass.errors({ pending, maxEntries: this.#map.info().maxEntries }) : [] }
  }

  /** The call ends at the first row that fails: that one is left pending and the rest tried again. */
  #writeBatch(batch: readonly Entry[], pass: Pass): void {
    const keys = pack(
      batch.map(([key]) => key),
      this.#map.keyBytes,
    )
    const values = pack(
      batch.map(([, value]) => value),
      this.#map.valueBytes,
    )
    pass.run(batch.length, {
      call: (from) =>
        this.#map.updateBatch(keys.subarray(from * this.#map.keyBytes), values.subarray(from * this.#map.valueBytes), batch.length - from),
      settled: (at) => {
        const [key, value] = batch[at] ?? []
        if (key !== undefined && value !== undefined) this.#delta.written(key, value)
      },
    })
  }

  #deleteBatch(batch: readonly string[], pass: Pass): void {
    const keys = pack(batch, this.#map.keyBytes)
    pass.run(batch.length, {
      call: (from) => {
        this.#map.deleteBatch(keys.subarray(from * this.#map.keyBytes), batch.length - from)
        return batch.length - from // a key that was gone already is as good as deleted
      },
      settled: (at) => {
        const key = batch[at]
        if (key !== undefined) this.#delta.removed(key)
      },
    })
  }
}

function* released<T>(items: Iterable<T>, isHeld: ((item: T) => boolean) | undefined): Generator<T> {
  for (const item of items) if (isHeld?.(item) !== true) yield item
}

/** What a map was read to have, as entries. */
export class MapRead implements Iterable<Entry> {
  readonly count: number
  readonly #keys: Buffer
  readonly #values: Buffer
  readonly #size: { readonly keyBytes: number; readonly valueBytes: number }

  constructor(
    read: { readonly keys: Buffer; readonly values: Buffer; readonly count: number },
    size: { readonly keyBytes: number; readonly valueBytes: number },
  ) {
    this.count = read.count
    this.#keys = read.keys
    this.#values = read.values
    this.#size = size
  }

  [Symbol.iterator](): Iterator<Entry> {
    return this.entries(0, this.count)
  }

  *entries(from: number, to: number): Generator<Entry> {
    const { keyBytes, valueBytes } = this.#size
    for (let at = from; at < Math.min(to, this.count); at++) {
      const key = this.#keys.toString('latin1', at * keyBytes, (at + 1) * keyBytes)
      yield [key, this.#values.toString('latin1', at * valueBytes, (at + 1) * valueBytes)]
    }
  }
}

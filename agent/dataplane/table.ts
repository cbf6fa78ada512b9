// SPDX-License-Identifier: Apache-2.0
/** One map kept equal to what its owners want: read back, compare, write in batches. Layer: agent/dataplane. */
import { MapError, errorCode } from '#lib/base/errors.ts'
import type { Entry } from '../maps/text.ts'
import type { Contest } from './claims.ts'
import { Claims } from './claims.ts'
import type { Drift } from './delta.ts'
import { Delta } from './delta.ts'

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

const BATCH_ROWS = 4096
/** Failing rows of one pass, each of which costs a call of its own, before the rest is left for the next pass. */
const FAILURES_A_PASS = 16

/** Not re-entrant: one loop reads back and applies; claims may change at any time between. Nothing is written before the first read-back. */
export class Table {
  readonly #map: TableMap
  readonly #name: string
  readonly #delta = new Delta()
  readonly #claims = new Claims(this.#delta)
  #known = false

  constructor(map: TableMap) {
    this.#map = map
    this.#name = map.info().name
  }

  /** Replaces the owner's rows; keys and values as the codecs encode them. */
  setFragment(owner: string, entries: Iterable<Entry>): void {
    this.#claims.setFragment(owner, entries)
  }

  /** Removes the rows of every owner that is not named. */
  complete(owners: ReadonlySet<string>): void {
    this.#claims.complete(owners)
  }

  contests(): Contest[] {
    return this.#claims.contests()
  }

  /** Rows that are wanted. */
  get size(): number {
    return this.#delta.size
  }

  get pending(): { readonly updates: number; readonly deletes: number } {
    return { updates: this.#delta.pendingUpdates, deletes: this.#delta.pendingDeletes }
  }

  /** Reads the whole map. What differs becomes pending; the first answer counts all there is as foreign. Throws MapError. */
  async readBack(): Promise<Drift> {
    try {
      const dump = await this.#map.dump()
      const drift = this.#delta.readBack({ [Symbol.iterator]: () => entriesOf(dump, this.#map) })
      this.#known = true
      return drift
    } catch (cause) {
      throw new MapError({ map: this.#name, op: 'read back', cause })
    }
  }

  /** Writes what is wanted and not there: first what replaces a row, for that needs no room. */
  applyUpdates(): Applied {
    const pass = new Pass(this.#name, 'update')
    const flush = (batch: readonly Entry[]): void => {
      this.#writeBatch(batch, pass)
    }
    if (this.#ready(pass)) {
      inBatches(this.#delta.replacements(), { flush, pass })
      inBatches(this.#delta.updates(), { flush, pass })
    }
    return this.#applied(pass, this.#delta.pendingUpdates)
  }

  /** Deletes what is there and not wanted. */
  applyDeletes(): Applied {
    const pass = new Pass(this.#name, 'delete')
    const flush = (batch: readonly string[]): void => {
      this.#deleteBatch(batch, pass)
    }
    if (this.#ready(pass)) inBatches(this.#delta.deletes(), { flush, pass })
    return this.#applied(pass, this.#delta.pendingDeletes)
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

/** One walk over what is pending: counts, failures, and when to give up. */
class Pass {
  readonly #map: string
  readonly #op: string
  readonly #causes = new Map<string, unknown>()
  #failures = 0
  done = 0

  constructor(map: string, op: string) {
    this.#map = map
    this.#op = op
  }

  get failed(): boolean {
    return this.#causes.size > 0
  }

  /** Too many failures, or the map is full: from then on every row would fail. */
  get stopped(): boolean {
    return this.#failures >= FAILURES_A_PASS || this.#causes.has('E2BIG')
  }

  refuse(reason: string): void {
    this.#causes.set(reason, new MapError({ map: this.#map, op: this.#op, reason }))
  }

  /** Calls until each of `count` rows is settled or has failed. `call` starts at a row and says how many it did. */
  run(count: number, rows: { readonly call: (from: number) => number; readonly settled: (at: number) => void }): void {
    for (let from = 0; from < count && !this.stopped; from++) {
      const before = from
      try {
        from += rows.call(from)
      } catch (cause) {
        from += doneOf(cause)
        this.#failures++
        const code = errorCode(cause) ?? 'unknown'
        if (!this.#causes.has(code)) this.#causes.set(code, cause)
      }
      for (let at = before; at < from; at++) rows.settled(at)
      this.done += from - before
    }
  }

  errors(state: { readonly pending: number; readonly maxEntries: number }): MapError[] {
    return [...this.#causes].map(([code, cause]) => {
      if (cause instanceof MapError) return cause
      if (code !== 'E2BIG') return new MapError({ map: this.#map, op: this.#op, cause })
      return new MapError({
        map: this.#map,
        op: this.#op,
        reason: `full: ${state.pending} rows wait for room among ${state.maxEntries}`,
        cause,
      })
    })
  }
}

/** How many rows a failed batch had done; 0 when the error does not say. */
function doneOf(cause: unknown): number {
  return cause instanceof Error && 'done' in cause && typeof cause.done === 'number' ? cause.done : 0
}

/** Walks `items`, which may shrink behind it. */
function inBatches<T>(items: Iterable<T>, how: { readonly flush: (batch: readonly T[]) => void; readonly pass: Pass }): void {
  let batch: T[] = []
  for (const item of items) {
    if (how.pass.stopped) return
    batch.push(item)
    if (batch.length < BATCH_ROWS) continue
    how.flush(batch)
    batch = []
  }
  if (batch.length > 0) how.flush(batch)
}

/** Rows back to back. */
function pack(rows: readonly string[], size: number): Buffer {
  const bytes = Buffer.allocUnsafe(rows.length * size)
  for (const [at, row] of rows.entries()) bytes.write(row, at * size, size, 'latin1')
  return bytes
}

function* entriesOf(
  dump: { readonly keys: Buffer; readonly values: Buffer; readonly count: number },
  size: { readonly keyBytes: number; readonly valueBytes: number },
): Generator<Entry> {
  for (let at = 0; at < dump.count; at++) {
    const key = dump.keys.toString('latin1', at * size.keyBytes, (at + 1) * size.keyBytes)
    yield [key, dump.values.toString('latin1', at * size.valueBytes, (at + 1) * size.valueBytes)]
  }
}

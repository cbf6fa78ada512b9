// SPDX-License-Identifier: Apache-2.0
/** One pass over pending rows in batches, which goes on past rows that fail. Layer: agent/dataplane. */
import { MapError, errorCode } from '#lib/base/errors.ts'

/** Rows of one call to the kernel. */
export const BATCH_ROWS = 4096
/** Failing rows of one pass, each of which costs a call of its own, before the rest is left for the next pass. */
const FAILURES_A_PASS = 16

/** What a pass has come to, and when it gives up. */
export class Pass {
  readonly #map: string
  readonly #op: string
  readonly #mostFailures: number
  readonly #causes = new Map<string, unknown>()
  #failures = 0
  done = 0

  constructor(map: string, op: string, mostFailures = FAILURES_A_PASS) {
    this.#map = map
    this.#op = op
    this.#mostFailures = mostFailures
  }

  get failed(): boolean {
    return this.#causes.size > 0
  }

  /** Too many failures, or the map is full: from then on every row would fail. */
  get stopped(): boolean {
    return this.#failures >= this.#mostFailures || this.#causes.has('E2BIG')
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

/** Bytes of one call to the kernel, unless one row alone has more. */
const BATCH_BYTES = 4 << 20

/** How many rows of this size go into one call. */
export function rowsOfBatch(rowBytes: number): number {
  return Math.max(1, Math.min(BATCH_ROWS, Math.floor(BATCH_BYTES / rowBytes)))
}

export interface Batching<T> {
  readonly flush: (batch: readonly T[]) => void
  readonly pass: Pass
  /** of one batch */
  readonly rows: number
}

/** Walks `items`, which may shrink behind it. */
export function inBatches<T>(items: Iterable<T>, how: Batching<T>): void {
  let batch: T[] = []
  for (const item of items) {
    if (how.pass.stopped) return
    batch.push(item)
    if (batch.length < how.rows) continue
    how.flush(batch)
    batch = []
  }
  if (batch.length > 0) how.flush(batch)
}

/** Rows back to back. */
export function pack(rows: readonly string[], size: number): Buffer {
  const bytes = Buffer.allocUnsafe(rows.length * size)
  for (const [at, row] of rows.entries()) bytes.write(row, at * size, size, 'latin1')
  return bytes
}

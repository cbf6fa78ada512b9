// SPDX-License-Identifier: Apache-2.0
/** Windows that may still change: what each node has last said of each key, and what of it is not in tables yet.
 * Layer: flows. */
import type { FlowCounts } from '#lib/flows/flow.ts'

/** What one node says of one key in one window, by ids. */
export interface Row {
  readonly start: number
  readonly node: number
  readonly key: number
  /** undefined: of a client that is none of our nodes */
  readonly sequence: number | undefined
  readonly source: number
  readonly dest: number
  readonly counts: FlowCounts
  readonly ports: readonly number[]
}

export interface LiveRow extends Row {
  /** its place in the table of rows that may change */
  readonly slot: number
}

/** - new: the first of its node, key and window; replaced: with what was known before
 *  - late: the window is closed; the tables know whether it is new
 *  - known: nothing that was not known */
export type Taken =
  | { readonly kind: 'new' }
  | { readonly kind: 'replaced'; readonly before: FlowCounts; readonly counts: FlowCounts }
  | { readonly kind: 'late' }
  | { readonly kind: 'known' }

/** What has to be written: rows that tables lack, those that others have replaced, and those of closed windows. */
export interface Batch {
  readonly rows: readonly LiveRow[]
  readonly gone: readonly number[]
  readonly late: readonly Row[]
}

interface OpenWindow {
  readonly rows: Map<number, LiveRow>
  /** what clients without sequences have said: they say it again over a new connection */
  readonly said: Set<string>
}

/** Node and key as one number: the first has at most 21 bits, the other 32. */
const NODES = 2 ** 32

export class OpenWindows {
  readonly #windows = new Map<number, OpenWindow>()
  /** start of the newest window that is closed */
  #closed: number
  #slot = 0
  #changed = new Set<LiveRow>()
  #gone: number[] = []
  #late = new Map<string, Row>()

  constructor(closed: number) {
    this.#closed = closed
  }

  get closed(): number {
    return this.#closed
  }

  /** rows of windows that are open */
  get size(): number {
    let size = 0
    for (const { rows } of this.#windows.values()) size += rows.size
    return size
  }

  /** `said`: all that an update without a sequence says, as a text. */
  take(row: Row, said = ''): Taken {
    const id = row.node * NODES + row.key
    if (row.start <= this.#closed) return this.#takeLate(row, `${row.start} ${id}`)
    let window = this.#windows.get(row.start)
    if (window === undefined) this.#windows.set(row.start, (window = { rows: new Map(), said: new Set() }))
    const before = window.rows.get(id)
    if (row.sequence === undefined) {
      if (window.said.has(said)) return { kind: 'known' }
      window.said.add(said)
    } else if (before?.sequence !== undefined && before.sequence >= row.sequence) return { kind: 'known' }
    const counts = row.sequence === undefined && before !== undefined ? sumOf(before.counts, row.counts) : row.counts
    const live: LiveRow = { ...row, counts, slot: this.#slot++ }
    window.rows.set(id, live)
    this.#changed.add(live)
    if (before === undefined) return { kind: 'new' }
    if (!this.#changed.delete(before)) this.#gone.push(before.slot)
    return { kind: 'replaced', before: before.counts, counts }
  }

  #takeLate(row: Row, id: string): Taken {
    const before = this.#late.get(id)
    if (before !== undefined && (before.sequence ?? 0) >= (row.sequence ?? 0)) return { kind: 'known' }
    this.#late.set(id, row)
    return { kind: 'late' }
  }

  /** What has changed since it was last asked. */
  takeBatch(): Batch {
    const batch = { rows: [...this.#changed], gone: this.#gone, late: [...this.#late.values()] }
    this.#changed = new Set()
    this.#gone = []
    this.#late = new Map()
    return batch
  }

  /** Is there one that begins at `last` or before? */
  hasUntil(last: number): boolean {
    return this.#windows.keys().some((start) => start <= last)
  }

  /** What waits for being written. */
  *pending(): Iterable<Row> {
    yield* this.#changed
    yield* this.#late.values()
  }

  /** Closes windows that begin at `last` or before. What is new of them is in the next batch; what comes is late. */
  close(last: number): void {
    this.#closed = Math.max(this.#closed, last)
    for (const start of this.#windows.keys()) if (start <= last) this.#windows.delete(start)
  }
}

/** Two parts of one window. */
function sumOf(a: FlowCounts, b: FlowCounts): FlowCounts {
  return {
    packetsIn: a.packetsIn + b.packetsIn,
    packetsOut: a.packetsOut + b.packetsOut,
    bytesIn: a.bytesIn + b.bytesIn,
    bytesOut: a.bytesOut + b.bytesOut,
    started: a.started + b.started,
    completed: a.completed + b.completed,
    // those of both parts are in both
    live: Math.max(a.live, b.live),
  }
}

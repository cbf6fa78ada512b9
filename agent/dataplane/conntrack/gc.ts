// SPDX-License-Identifier: Apache-2.0
/** Walks the flow table all the time, slowly: counts flows, deletes what has expired, and says when it is full.
 * Layer: agent/dataplane.
 *
 * Programs ignore an expired entry, so deleting one changes nothing for any packet. But a packet may come between the
 * read and the deletion, and put a new flow in the old one's place. So an entry is deleted only if it still has the
 * very bytes it was judged by, compared less than a microsecond before. A new flow that comes even in that time loses
 * its first packet's entry. That is as if the table had evicted the entry, and the client's retry makes it again. Both
 * entries of a translated flow are equally old, for programs touch both, so one pass deletes both. If one goes before
 * the other that does no harm: the other is expired too. */
import type { Clock } from '#lib/base/clock.ts'
import { errorCode } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import { chunksOf, type Chunk, type ChunkedMap } from '../../maps/chunks.ts'
import { ConntrackCounts } from './counts.ts'
import type { FlowReader } from './reader.ts'

export interface FlowMap extends ChunkedMap {
  readonly keyBytes: number
  readonly valueBytes: number
  deleteSame(keys: Uint8Array, values: Uint8Array, count: number): number
  lookup(key: Uint8Array): Buffer | undefined
  update(key: Uint8Array, value: Uint8Array, flags?: number): void
}

export interface FlowTable {
  readonly map: FlowMap
  readonly reader: FlowReader
  readonly maxEntries: number
}

export interface ConntrackGcOptions {
  readonly clock: Clock
  readonly log: Log
  /** ms of the programs' clock */
  readonly monotonicMs: () => number
  /** undefined: there is none, or flows are being carried from one to another */
  readonly table: () => FlowTable | undefined
  /** called as soon as {@link FULL} of the table is live flows */
  readonly onFull: () => void
}

/** entries read at a time: less than a ms */
const ROOM = 1024
/** time spent on other things for each ms of this, so that it takes at most a hundredth of a CPU */
const REST = 99
/** A look that took longer was waiting for a CPU, and rests no longer for that. */
const LONGEST_REST_MS = 1000
/** from the end of a pass to the next one */
const PAUSE_MS = 10_000
/** Other clocks on other CPUs, and programs with longer time-outs that are still at work. */
const MARGIN_MS = 30_000
export const FULL = 0.9

export class ConntrackGc {
  readonly #options: ConntrackGcOptions
  #census: ConntrackCounts | undefined
  #deleted = 0

  constructor(options: ConntrackGcOptions) {
    this.#options = options
  }

  /** as the last whole pass found it */
  get census(): ConntrackCounts | undefined {
    return this.#census
  }

  /** entries, since the start */
  get deleted(): number {
    return this.#deleted
  }

  /** Passes until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await this.#rest(PAUSE_MS, signal)
      const table = this.#options.table()
      if (table !== undefined && !isOver()) await this.#try(table, signal)
    }
  }

  /** A table that is replaced is closed even while a pass walks it. */
  async #try(table: FlowTable, signal: AbortSignal): Promise<void> {
    try {
      await this.pass(table, signal)
    } catch (thrown) {
      if (errorCode(thrown) !== 'EBADF') this.#options.log.warn({ error: thrown }, 'flow-table.gc-failed')
    }
  }

  /** The whole table once, unless it is replaced meanwhile, or the signal aborts. */
  async pass(table: FlowTable, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const census = new ConntrackCounts()
    const full = { said: false }
    let since = clock.now()
    for await (const chunk of chunksOf(table.map, ROOM)) {
      if (this.#options.table()?.map !== table.map) return
      this.#sweep(table, chunk, census)
      if (!full.said && census.live > FULL * table.maxEntries) {
        full.said = true
        this.#options.onFull()
      }
      await this.#rest(Math.min(LONGEST_REST_MS, (clock.now() - since) * REST), signal)
      if (signal.aborted) return
      since = clock.now()
    }
    this.#census = census
  }

  #sweep({ map, reader }: FlowTable, chunk: Chunk, census: ConntrackCounts): void {
    const now = this.#options.monotonicMs()
    const old: number[] = []
    for (let at = 0; at < chunk.count; at++) {
      const entry = reader.read(chunk, at, now)
      census.add(entry)
      if (entry.expiredMs > MARGIN_MS) old.push(at)
    }
    if (old.length === 0) return
    const part = (bytes: Buffer, size: number): Buffer => Buffer.concat(old.map((at) => bytes.subarray(at * size, (at + 1) * size)))
    this.#deleted += map.deleteSame(part(chunk.keys, map.keyBytes), part(chunk.values, map.valueBytes), old.length)
  }

  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    await this.#options.clock.sleep(ms, signal).catch((thrown: unknown) => {
      if (!signal.aborted) throw thrown
    })
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Walks the flow table all the time, slowly: counts flows, deletes what has expired, and says when it is full. At once
 * and fast when programs have found no room in it. Layer: agent/dataplane.
 *
 * Programs ignore an expired entry, so deleting one changes nothing for any packet. But a packet may come between the
 * read and the deletion, and put a new flow in the old one's place. So an entry is deleted only if it still has the
 * very bytes it was judged by, compared less than a microsecond before. A new flow that comes even in that time loses
 * its first packet's entry. The client's retry makes it again. Both
 * entries of a translated flow are about equally old, for programs touch both, so one pass deletes both. If one expires
 * before the other that does no harm: the other is expired too, or soon will be. */
import type { Clock } from '#lib/base/clock.ts'
import { errorCode } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import { chunksOf, type Chunk, type ChunkedMap } from '../../maps/chunks.ts'
import type { ClientOf } from './client.ts'
import { ConntrackCounts } from './counts.ts'
import type { DestinationOf } from './destination.ts'
import { IdleTimes } from './idle-times.ts'
import type { FlowEntry, FlowReader } from './reader.ts'

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
  readonly destinationOf: DestinationOf
  readonly clientOf: ClientOf
  readonly maxEntries: number
  /** ms of the programs' clock: when they found no room in it last; 0: never */
  readonly fullAt: () => number
}

export interface ConntrackGcOptions {
  readonly clock: Clock
  readonly log: Log
  /** ms of the programs' clock */
  readonly monotonicMs: () => number
  /** undefined: there is none, or flows are being carried from one to another */
  readonly table: () => FlowTable | undefined
  /** Called when {@link FULL} of the table is flows that programs would not evict first. True: it will grow. */
  readonly onFull: () => boolean
}

/** entries read at a time: less than a ms */
const ROOM = 1024
/** time spent on other things for each ms of this, so that it takes at most a hundredth of a CPU */
const REST = 99
/** A look that took longer was waiting for a CPU, and rests no longer for that. */
const LONGEST_REST_MS = 1000
/** from the end of a pass to the next one */
const PAUSE_MS = 10_000
/** how often it asks whether programs have found no room */
const TICK_MS = 500
/** from one fast pass to the next: at half a million entries one is half a second of CPU time */
const RELIEF_MS = 10_000
/** Other clocks on other CPUs, and programs with longer time-outs that are still at work. */
const MARGIN_MS = 30_000
/** What programs evict first goes after this time, when there is no room. The two entries of a translated flow are not
 * touched by the same packets: one may seem 3 s older than the other. */
const FIRST_MS = 4000
export const FULL = 0.9
/** Of a table full of flows of both ends so much goes at a time at the most, the longest idle first. */
export const GIVEN_UP = 1 / 16

export class ConntrackGc {
  readonly #options: ConntrackGcOptions
  #census: ConntrackCounts | undefined
  #deleted = 0
  /** ms of the programs' clock, of the last fast pass */
  #relievedAt: number

  constructor(options: ConntrackGcOptions) {
    this.#options = options
    this.#relievedAt = options.monotonicMs() - RELIEF_MS
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
    for (let paused = 0; !isOver(); paused += TICK_MS) {
      await this.#rest(TICK_MS, signal)
      const table = this.#options.table()
      const isFull = table !== undefined && this.#isFull(table)
      if (table === undefined || isOver() || (paused < PAUSE_MS && !isFull)) continue
      await this.#try(table, signal, isFull)
      paused = 0
    }
  }

  /** A table that is replaced is closed even while a pass walks it. */
  async #try(table: FlowTable, signal: AbortSignal, isFull: boolean): Promise<void> {
    try {
      await (isFull ? this.relieve(table, signal) : this.pass(table, signal))
    } catch (thrown) {
      if (errorCode(thrown) !== 'EBADF') this.#options.log.warn({ error: thrown }, 'flow-table.gc-failed')
    }
  }

  /** The whole table once, unless it is replaced meanwhile, programs find no room in it, or the signal aborts. */
  async pass(table: FlowTable, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const census = new ConntrackCounts()
    let since = clock.now()
    const isWhole = await this.#walk(table, signal, {
      see: (entry) => {
        census.add(entry)
        return entry.expiredMs > MARGIN_MS
      },
      next: async () => {
        await this.#rest(Math.min(LONGEST_REST_MS, (clock.now() - since) * REST), signal)
        since = clock.now()
        return !this.#isFull(table)
      },
    })
    if (!isWhole) return
    this.#census = census
    if (census.kept > FULL * table.maxEntries) this.#options.onFull()
  }

  /** The same without rest: deletes what programs evict first, and where the table is full of other flows and cannot
   * grow, those that have been idle longest. */
  async relieve(table: FlowTable, signal: AbortSignal): Promise<void> {
    this.#relievedAt = this.#options.monotonicMs()
    const census = new ConntrackCounts()
    const idle = new IdleTimes()
    const next = async (): Promise<boolean> => (await this.#rest(0, signal), true)
    const see = (entry: FlowEntry): boolean => {
      if (entry.expiredMs > 0 || (entry.evictedFirst && entry.idleMs > FIRST_MS)) return true
      census.add(entry)
      idle.add(entry.idleMs)
      return false
    }
    if (!(await this.#walk(table, signal, { see, next }))) return
    this.#census = census
    if (census.kept <= FULL * table.maxEntries || this.#options.onFull()) return
    await this.#giveUp(table, signal, { most: idle.longest(GIVEN_UP * table.maxEntries), next })
  }

  /** Deletes flows that have been idle for `most` ms, the share that is to go at the most, and none that is in use. */
  async #giveUp(
    table: FlowTable,
    signal: AbortSignal,
    how: { readonly most: number; readonly next: () => Promise<boolean> },
  ): Promise<void> {
    const idleMs = Math.max(how.most, FIRST_MS)
    let left = GIVEN_UP * table.maxEntries
    const before = this.#deleted
    await this.#walk(table, signal, { see: (entry) => entry.idleMs >= idleMs && left-- > 0, next: how.next })
    this.#options.log.warn({ entries: table.maxEntries, deleted: this.#deleted - before, idleMs }, 'flow-table.evicted')
  }

  /** Deletes the entries of which `see` is true; `next` after each part says whether to go on. True: that was all. */
  async #walk(
    table: FlowTable,
    signal: AbortSignal,
    how: { readonly see: (entry: FlowEntry) => boolean; readonly next: () => Promise<boolean> },
  ): Promise<boolean> {
    for await (const chunk of chunksOf(table.map, ROOM)) {
      if (this.#options.table()?.map !== table.map) return false
      this.#sweep(table, chunk, how.see)
      if (!(await how.next()) || signal.aborted) return false
    }
    return true
  }

  #sweep({ map, reader }: FlowTable, chunk: Chunk, isOver: (entry: FlowEntry) => boolean): void {
    const now = this.#options.monotonicMs()
    const old: number[] = []
    for (let at = 0; at < chunk.count; at++) if (isOver(reader.read(chunk, at, now))) old.push(at)
    if (old.length === 0) return
    const part = (bytes: Buffer, size: number): Buffer => Buffer.concat(old.map((at) => bytes.subarray(at * size, (at + 1) * size)))
    this.#deleted += map.deleteSame(part(chunk.keys, map.keyBytes), part(chunk.values, map.valueBytes), old.length)
  }

  /** Have programs found no room since the last fast pass, and is another due? */
  #isFull(table: FlowTable): boolean {
    return table.fullAt() > this.#relievedAt && this.#options.monotonicMs() - this.#relievedAt >= RELIEF_MS
  }

  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    await this.#options.clock.sleep(ms, signal).catch((thrown: unknown) => {
      if (!signal.aborted) throw thrown
    })
  }
}

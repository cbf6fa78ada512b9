// SPDX-License-Identifier: Apache-2.0
/** The flows of this node, for whatever reads them: told while there is a reader, and for a while after the last.
 * Layer: agent/flows. */
import type { Clock } from '#lib/base/clock.ts'
import { everyMs } from '#lib/base/clock.ts'
import { errorCode, errorText } from '#lib/base/errors.ts'
import type { FlowUpdate, FlowWindow } from '#lib/flows/flow.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import type { Log } from '#lib/obs/log.ts'
import { chunksOf, type ChunkedMap } from '../maps/chunks.ts'
import type { FlowReader } from '../dataplane/conntrack/reader.ts'
import { FlowBook } from './book.ts'
import { Ends } from './ends.ts'
import { Events, type Telling } from './events.ts'
import { History } from './history.ts'
import { MeantServices } from './meant.ts'
import { takeSaved, writeSaved } from './saved.ts'
import { seenReader, type SeenReader } from './table.ts'
import { Tracer } from './trace.ts'

/** The programs at work. */
export interface FlowPrograms extends Telling {
  readonly map: ChunkedMap & { readonly keyBytes: number; readonly valueBytes: number }
  readonly reader: Pick<FlowReader, 'read'>
  /** "no_route" */
  reasonName(number: number): string
  /** Has them count and tell, or not. */
  setAccounts(on: boolean): void
}

export interface FlowsOptions {
  /** this node's name */
  readonly node: string
  readonly clock: Clock
  readonly log: Log
  /** ms of the programs' clock */
  readonly monotonicMs: () => number
  /** undefined: there are none yet, or flows are being carried from one table to another */
  readonly programs: () => FlowPrograms | undefined
  /** where an agent that ends leaves what it knows */
  readonly savedFile: string
  /** rules by the numbers that programs have for them */
  readonly ruleNames: () => ReadonlyMap<number, string>
}

export type FlowListener = (updates: readonly FlowUpdate[]) => void

const TICK_MS = 250
/** from one telling of what is new to the next */
const NEWS_MS = 1000
/** Programs go on counting for so long after the last reader has gone: it may come again. */
const LINGER_MS = 60_000
/** entries read at a time: a ms or two */
const ROOM = 1024

export class Flows {
  readonly #options: FlowsOptions
  readonly #listeners = new Set<FlowListener>()
  readonly #ends: Ends
  readonly #meant = new MeantServices()
  readonly #history: History
  #book: FlowBook
  #events: Events | undefined
  #tracer: Tracer | undefined
  #world: Snapshot | undefined
  /** of this, the index knows all */
  #isIndexed = false
  /** names of drops, of the programs at work */
  #reasonName: FlowPrograms['reasonName'] = String
  #seen: { readonly id: string; readonly read: SeenReader } | undefined
  /** an agent before this one may have left something until then */
  #hasBegun = false
  /** when the last reader went */
  #leftAt: number
  #newsAt = 0
  /** a look at the table is due at once */
  #isFresh = true
  #failure: string | undefined
  /** windows that made room unsent */
  #untaken = 0

  constructor(options: FlowsOptions) {
    this.#options = options
    this.#ends = new Ends(options.node)
    this.#history = new History({ node: options.node, first: options.clock.wall() * 1000 })
    this.#book = this.#newBook()
    this.#leftAt = options.clock.now()
  }

  #newBook(): FlowBook {
    const { ruleNames } = this.#options
    return new FlowBook({
      ...{ ends: this.#ends, meant: this.#meant },
      tracer: () => this.#traced(),
      ruleName: (number) => ruleNames().get(number),
      reasonName: (number) => this.#reasonName(number),
    })
  }

  #traced(): Pick<Tracer, 'hits'> {
    if (this.#world === undefined) return { hits: () => [] }
    return (this.#tracer ??= new Tracer(this.#world, this.#ends))
  }

  /** What the sources have, and what changed of it since: undefined the first time. */
  note(world: Snapshot, changes: readonly ObjectChange[] | undefined): void {
    this.#world = world
    this.#tracer = undefined
    this.#book.forget()
    if (this.#isOn) this.#index(changes)
    else this.#isIndexed = false
  }

  #index(changes: readonly ObjectChange[] | undefined): void {
    if (this.#world === undefined) return
    const since = this.#isIndexed ? changes : undefined
    this.#ends.note(this.#world, since)
    this.#meant.note(this.#world, since)
    this.#isIndexed = true
  }

  /** Programs count and tell. */
  get #isOn(): boolean {
    return this.#events !== undefined
  }

  /** From `since` on, of what is still known; then whatever is told, until the result is disposed of. */
  listen(listener: FlowListener, since = 0): Disposable {
    const known = [...this.#history.since(since)]
    if (known.length > 0) listener(known)
    this.#listeners.add(listener)
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener)
        this.#leftAt = this.#options.clock.now()
      },
    }
  }

  /** Until the signal aborts. Programs go on counting then: the next agent may have a reader. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.#try() })
    } finally {
      this.#events?.[Symbol.dispose]()
      this.#save()
    }
  }

  #save(): void {
    if (!this.#isOn) return
    try {
      writeSaved(this.#options.savedFile, { book: this.#book.save(), updates: [...this.#history.since(0)] })
    } catch (thrown) {
      this.#options.log.warn({ error: thrown }, 'flows.not-saved')
    }
  }

  /** What an agent before has left: it had readers. */
  #restore(): boolean {
    try {
      const saved = takeSaved(this.#options.savedFile)
      if (saved === undefined) return false
      this.#index(undefined)
      this.#book.restore(saved.book)
      this.#history.restore(saved.updates)
      this.#isFresh = false
      return true
    } catch (thrown) {
      this.#options.log.warn({ error: thrown }, 'flows.not-restored')
      return false
    }
  }

  async #try(): Promise<void> {
    try {
      await this.#tick()
      this.#failure = undefined
    } catch (thrown) {
      // a table that is replaced is closed
      if (errorCode(thrown) === 'EBADF') return
      if (errorText(thrown) !== this.#failure) this.#options.log.warn({ error: thrown }, 'flows.not-read')
      this.#failure = errorText(thrown)
    }
  }

  async #tick(): Promise<void> {
    const { clock, programs: find } = this.#options
    const programs = find()
    if (programs === undefined) return
    const isWanted = this.#listeners.size > 0 || clock.now() - this.#leftAt < LINGER_MS
    if (this.#world === undefined) return
    if (!this.#hasBegun) {
      this.#hasBegun = true
      if (this.#restore()) return await this.#go(programs)
    }
    if (this.#listeners.size === 0 && !this.#isOn) {
      if (!isWanted) programs.setAccounts(false)
      return
    }
    if (!isWanted) this.#end(programs)
    else await this.#go(programs)
  }

  #end(programs: FlowPrograms): void {
    programs.setAccounts(false)
    this.#events?.[Symbol.dispose]()
    this.#events = undefined
    this.#book = this.#newBook()
    this.#history.clear()
    this.#isFresh = true
  }

  async #go(programs: FlowPrograms): Promise<void> {
    const { clock } = this.#options
    if (this.#events === undefined) {
      this.#events = new Events((event) => {
        this.#book.take(event)
      })
      this.#index(undefined)
    }
    this.#reasonName = (number) => programs.reasonName(number)
    programs.setAccounts(true)
    this.#events.follow(programs, clock.now())
    if (this.#isFresh) await this.#look(programs)
    const seconds = clock.wall() / 1000
    if (this.#book.isOver(seconds)) {
      await this.#look(programs)
      this.#tell(this.#book.turn(clock.wall() / 1000) ?? [])
    } else if (clock.now() >= this.#newsAt) {
      this.#newsAt = clock.now() + NEWS_MS
      this.#tell(this.#book.news(seconds))
    }
  }

  /** At the whole table, part by part. One that is cut short says nothing of what is gone. */
  async #look(programs: FlowPrograms): Promise<void> {
    const { monotonicMs, programs: find } = this.#options
    if (this.#seen?.id !== programs.id) this.#seen = { id: programs.id, read: seenReader(programs.btf, programs.reader) }
    const { read } = this.#seen
    this.#book.beginLook()
    for await (const chunk of chunksOf(programs.map, ROOM)) {
      if (find()?.map !== programs.map) return
      for (const seen of read(chunk, monotonicMs())) this.#book.see(seen)
    }
    this.#book.endLook()
    this.#isFresh = false
  }

  #tell(windows: readonly FlowWindow[]): void {
    const updates = this.#history.add(windows)
    if (updates.length > 0) for (const listener of this.#listeners) listener(updates)
  }

  /** Windows that no aggregator took in time. */
  lose(windows: number): void {
    this.#untaken += windows
  }

  /** What there is of it, for metrics. */
  get facts(): {
    readonly connections: number
    readonly keys: number
    readonly lost: number
    readonly untaken: number
    readonly readers: number
  } {
    const { size } = this.#book
    return { ...size, lost: this.#events?.lost ?? 0, untaken: this.#untaken, readers: this.#listeners.size }
  }
}

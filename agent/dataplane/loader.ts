// SPDX-License-Identifier: Apache-2.0
/** What is loaded now, what it takes the place of, and when that may go. Layer: agent/dataplane. */
import { freemem } from 'node:os'
import { monotonicNs } from '#native'
import type { Configuration } from '#agent/compile/desired.ts'
import { decodeBytes } from '#agent/maps/byte-rows.ts'
import { bind } from '#agent/maps/codec.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { pressure as pressureShape } from '#agent/maps/shapes.ts'
import { backoffMs } from '#lib/base/backoff.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { clientReader } from './conntrack/client.ts'
import { destinationReader } from './conntrack/destination.ts'
import type { FlowTable } from './conntrack/gc.ts'
import { FlowReader } from './conntrack/reader.ts'
import { doubled, keptRoom } from './conntrack/resize.ts'
import type { GenerationTables } from './generation-tables.ts'
import { conditionOf } from './reconcile/reconciler.ts'
import { beginTakeover, TAKEOVER_MS } from './conntrack/takeover.ts'

/** Generations of programs in the kernel, and the maps they share. */
export interface Generations {
  /** Adopts or loads what this configuration needs. Rejects when it is refused; then maps are as they were.
   * `onVerifying`: the kernel is at work on programs, and needs nothing of us for a while. */
  load(configuration: Configuration, onVerifying?: () => void): Promise<GenerationTables>
  /** ids of those that are complete */
  list(): readonly string[]
  /** Removes all but this one; returns which. */
  dropOthers(keep: string): readonly string[]
  /** Maps and programs that have lost their pin get it again; returns which: "map np_ct". Throws where none can be. */
  repin(loaded: GenerationTables): readonly string[]
  /** entries that the flow table has room for; undefined: there is none */
  flowTableSize(): number | undefined
}

export interface ProgramLoaderOptions {
  readonly generations: Generations
  readonly clock: Clock
  /** Has another proxy been at work on this node? Asked when no programs of ours were found there; never rejects. */
  readonly otherProxy: () => Promise<boolean>
  /** These are the first programs of ours on this node, and at no hook yet. Never rejects. */
  readonly onFirst: (loaded: GenerationTables) => Promise<void>
  /** what was begun waits to be taken up, or was refused and is to be tried again */
  readonly onLoaded: () => void
  readonly log: Log
  readonly health: Health
}

/** What is being loaded, and then waits to be taken up. */
interface Coming {
  readonly configuration: Configuration
  fresh: GenerationTables | undefined
  /** the kernel is at work, or nothing is left for it to do */
  readonly verifying: PromiseWithResolvers<void>
  /** settles when it is loaded, or was refused */
  loading: Promise<void>
}

const RETRY = { firstMs: 500, maxMs: 60_000 }

export class ProgramLoader implements Disposable {
  readonly #options: ProgramLoaderOptions
  #loaded: GenerationTables | undefined
  #for: Configuration | undefined
  /** still at work at some hooks, until all run what is loaded */
  #outgoing: GenerationTables[] = []
  #settled = true
  #flows: FlowTable | undefined
  #otherProxy: Promise<boolean> | undefined
  /** no programs of ours were found */
  #isFirst = false
  /** entries of the flow table as the settings say */
  #configured: number | undefined
  /** what it is to have; undefined: as the settings say */
  #room: number | undefined
  /** size at which it was said to be full */
  #full: number | undefined
  /** what it had before it was to grow, until it has grown */
  #smaller: number | undefined
  #failures = 0
  #notBefore = 0
  #coming: Coming | undefined

  constructor(options: ProgramLoaderOptions) {
    this.#options = options
  }

  get loaded(): GenerationTables | undefined {
    return this.#loaded
  }

  /** The flow table, for those that walk it or look a flow up; undefined while flows may be in two tables. */
  get flows(): FlowTable | undefined {
    return this.#settled ? this.#flows : undefined
  }

  /** Has the next {@link ensure} make the flow table twice as large; false when it may not be larger. */
  grow(): boolean {
    const { flows } = this
    if (this.#smaller !== undefined) return true
    if (flows === undefined || this.#configured === undefined) return false
    const entryBytes = flows.map.keyBytes + flows.map.valueBytes
    const room = doubled({ room: flows.maxEntries, configured: this.#configured, entryBytes, freeBytes: freemem() })
    if (room === undefined) {
      this.#sayFull(flows.maxEntries)
      return false
    }
    this.#options.log.info({ entries: flows.maxEntries, to: room }, 'flow-table.resized')
    this.#smaller = flows.maxEntries
    this.#room = room
    return true
  }

  /** false while hooks still run, or may run, what was loaded before */
  get settled(): boolean {
    return this.#settled
  }

  /** Has it loaded if that is needed and due. Only the first time it is waited for: to load programs takes a while, in
   * which what is there is to be kept right. A failure leaves that at work. */
  async ensure(asked: Configuration): Promise<void> {
    const wanted = this.#sized(asked)
    if (this.#coming === undefined) {
      if (deepEqual(wanted, this.#for)) this.#forgive()
      else if (this.#options.clock.now() >= this.#notBefore) this.#begin(wanted)
    }
    if (this.#loaded === undefined) await this.#coming?.loading
  }

  /** Before the first {@link ensure}, which will ask for the same: resolves once the kernel is at work on it. */
  async begin(asked: Configuration): Promise<void> {
    if (this.#loaded === undefined && this.#coming === undefined && this.#failures === 0) this.#begin(this.#sized(asked))
    await this.#coming?.verifying.promise
  }

  /** Something is loaded that waits for {@link takeUp}. */
  get isWaiting(): boolean {
    return this.#coming?.fresh !== undefined
  }

  /** From now on this is what is loaded, with tables that know nothing yet. */
  async takeUp(): Promise<void> {
    const { fresh, configuration } = this.#coming ?? {}
    if (fresh === undefined || configuration === undefined) return
    if (this.#loaded === undefined && this.#isFirst) await this.#options.onFirst(fresh)
    this.#coming = undefined
    if (this.#loaded === undefined && (await this.#otherProxy)) this.#takeOver(fresh)
    if (this.#loaded !== undefined) this.#outgoing.push(this.#loaded)
    this.#loaded = fresh
    this.#for = configuration
    this.#settled = false
    this.#flows = flowTable(fresh, configuration)
    this.#smaller = undefined
    this.#failures = 0
  }

  /** Resolves when nothing is being loaded. */
  async finish(): Promise<void> {
    await this.#coming?.loading
  }

  /** ms until a failed load is due again; undefined when there is none, or it is being tried */
  retryMs(): number | undefined {
    return this.#failures === 0 || this.#coming !== undefined ? undefined : Math.max(0, this.#notBefore - this.#options.clock.now())
  }

  /** Every hook runs what is loaded: the rest goes. */
  async settle(): Promise<void> {
    const loaded = this.#loaded
    // the pins of what is coming are not to be dropped
    if (this.#settled || loaded === undefined || this.#coming !== undefined) return
    this.#settled = true
    const copied = await loaded.shared.finish()
    const dropped = this.#options.generations.dropOthers(loaded.generation.id)
    for (const one of this.#outgoing.splice(0)) one[Symbol.dispose]()
    if (dropped.length > 0 || copied > 0) this.#options.log.info({ dropped, copied }, 'programs.retired')
  }

  /** Looks for pins that are gone, and returns them: pinned again at once, by the handles that we have. */
  checkPins(): readonly string[] {
    const loaded = this.#loaded
    // while others are made, pins change by our own doing
    if (loaded === undefined || this.#for === undefined || this.#coming !== undefined) return []
    try {
      return this.#options.generations.repin(loaded)
    } catch {
      // their file system is gone, perhaps; the next ensure() says why loading fails, and tries it again
      this.#for = undefined
      return [`generation ${loaded.generation.id}`]
    }
  }

  /** Lets go of every handle, once nothing is being loaded; what is pinned goes on. */
  [Symbol.dispose](): void {
    for (const one of [...this.#outgoing, this.#loaded, this.#coming?.fresh]) one?.[Symbol.dispose]()
  }

  #begin(configuration: Configuration): void {
    this.#otherProxy ??= this.#askOtherProxy()
    const coming: Coming = { configuration, fresh: undefined, verifying: Promise.withResolvers(), loading: Promise.resolve() }
    this.#coming = coming
    coming.loading = this.#load(coming)
  }

  /** Maps alone are no sign of ours: programs may have been refused, or their loader killed. */
  #askOtherProxy(): Promise<boolean> {
    this.#isFirst = this.#options.generations.list().length === 0
    return this.#isFirst ? this.#options.otherProxy() : Promise.resolve(false)
  }

  /** Never rejects. */
  async #load(coming: Coming): Promise<void> {
    const start = this.#options.clock.now()
    try {
      // a start that finds our programs does not look for another proxy: none may be pinned before this start has the
      // answer
      await this.#otherProxy
      // what is at work keeps its flows
      if (this.#loaded !== undefined) this.#options.generations.repin(this.#loaded)
      coming.fresh = await this.#options.generations.load(coming.configuration, coming.verifying.resolve)
      this.#say(coming.fresh, this.#options.clock.now() - start)
    } catch (thrown) {
      this.#coming = undefined
      if (!this.#staysSmaller(thrown)) this.#refused(thrown)
    }
    coming.verifying.resolve()
    this.#options.onLoaded()
  }

  #refused(thrown: unknown): void {
    this.#notBefore = this.#options.clock.now() + backoffMs(RETRY, this.#failures++)
    this.#options.health.fail(conditionOf('programs'), errorText(thrown))
    this.#options.log.error({ error: thrown }, 'programs.rejected')
  }

  /** What was refused is not wanted any more. */
  #forgive(): void {
    if (this.#failures === 0) return
    this.#failures = 0
    this.#notBefore = 0
    this.#options.health.pass(conditionOf('programs'))
  }

  #sized(asked: Configuration): Configuration {
    const { conntrack } = asked.mapSizes
    this.#configured = conntrack
    this.#room = keptRoom(conntrack, this.#room ?? this.#options.generations.flowTableSize())
    return { ...asked, mapSizes: { ...asked.mapSizes, conntrack: this.#room } }
  }

  /** True when the table still has its old size, because the new one could not be made or programs were refused with
   * it. Then everything is as it was, and it is not tried again before more room is asked for. */
  #staysSmaller(thrown: unknown): boolean {
    if (this.#smaller === undefined || this.#options.generations.flowTableSize() !== this.#smaller) return false
    this.#options.log.error({ entries: this.#smaller, error: thrown }, 'flow-table.resize-failed')
    this.#room = this.#smaller
    this.#smaller = undefined
    return true
  }

  /** Once for each size. */
  #sayFull(entries: number): void {
    if (this.#full === entries) return
    this.#full = entries
    this.#options.log.warn({ entries }, 'flow-table.filled')
  }

  #takeOver({ shared, btf }: GenerationTables): void {
    const map = shared.maps.get('np_state')
    if (map === undefined) return
    beginTakeover(map, btf, monotonicNs() / 1e6)
    this.#options.log.info({ ms: TAKEOVER_MS }, 'takeover.begun')
  }

  #say({ generation, shared }: GenerationTables, ms: number): void {
    const { adopted, created, replaced } = shared
    this.#options.health.pass(conditionOf('programs'))
    this.#options.log.info(
      { generation: generation.id, adopted: generation.adopted, maps: { adopted: adopted.length, created, replaced }, ms: Math.round(ms) },
      'programs.ready',
    )
  }
}

function flowTable({ shared, btf }: GenerationTables, { knobs }: Configuration): FlowTable | undefined {
  const [map, pressure] = [shared.maps.get('np_ct'), shared.maps.get('np_pressure')]
  if (map === undefined || pressure === undefined) return undefined
  const codec = bind(pressureShape, structLayout(btf, 'pressure'))
  const fullAt = (): number => {
    const bytes = pressure.lookup(Buffer.alloc(pressure.keyBytes))
    return bytes === undefined ? 0 : decodeBytes(codec, bytes).full_at
  }
  const reader = new FlowReader(btf, knobs.timeouts)
  const ways = { destinationOf: destinationReader(map, btf), clientOf: clientReader(btf) }
  return { map, reader, ...ways, maxEntries: map.info().maxEntries, fullAt }
}

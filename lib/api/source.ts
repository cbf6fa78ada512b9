// SPDX-License-Identifier: Apache-2.0
/** An API server as a source: every kind we read is listed once and watched from then on. Layer: lib/api.
 *
 * When the server is lost everything stays as it was; when it is back the watches go on where they ended, and where
 * that is not possible lists are compared with what is held. */
import type { Backoff } from '../base/backoff.ts'
import { restless, systemClock, type RestlessClock } from '../base/clock.ts'
import { parsePort, tryParseAddr, type Addr, type Port } from '../base/ip.ts'
import type { Rejected } from '../base/result.ts'
import { deepEqual } from '../base/deep-equal.ts'
import type { LastGoodFile } from '../store/last-good.ts'
import type { Sink, Source, SourceEvent, SourceStatus } from '../store/source.ts'
import { ApiClient } from './client.ts'
import { UnreachableError } from './errors.ts'
import { ObjectCache } from './watch/object-cache.ts'
import type { KindFacts, Patience } from './watch/kind-shared.ts'
import { KindWatch } from './watch/kind-watch.ts'
import { Reconnect } from './watch/reconnect.ts'
import { VersionHistory } from './watch/version-history.ts'
import { ApiDiscovery } from './watch/api-discovery.ts'
import type { TransportOptions } from './connection/transport.ts'
import { Semaphore } from '../base/async/semaphore.ts'
import { watchedOn, type WatchedKind } from './watch/watch-list.ts'

export interface ApiSourceOptions extends TransportOptions {
  /** whose it is: of Nodes its own alone is asked for */
  readonly node: string
  /** file of last good versions of objects that allow or deny traffic, over a restart; none when not given */
  readonly lastGood?: LastGoodFile
  readonly backoff?: Backoff
  readonly absentMs?: number
  readonly watchSeconds?: number
  readonly patience?: Patience
}

const BACKOFF: Backoff = { firstMs: 500, maxMs: 30_000 }
const ABSENT_MS = 60_000
const WATCH_SECONDS = 600
const PATIENCE: Patience = { pageMs: 60_000, graceMs: 30_000 }
/** Kinds that come and go wake the others no oftener. */
const WAKE_MS = 5000
/** Pages of so many kinds are in memory at once: while the server makes one another is read. */
const LISTS_AT_ONCE = 2

export class ApiSource implements Source {
  readonly name = 'api'
  readonly #client: ApiClient
  /** of all that wait for their next attempt */
  readonly #clock: RestlessClock
  readonly #server: ApiSourceOptions['server']
  readonly #held: ObjectCache
  readonly #link: Reconnect
  readonly #kinds: readonly KindWatch[]
  readonly #unlisted: Set<WatchedKind>
  #sink: Sink | undefined
  #wokenAt = -Infinity
  #waking: (() => void) | undefined
  #said: { readonly revision: number; readonly unavailable: SourceStatus['unavailable'] } | undefined

  constructor(options: ApiSourceOptions) {
    const { backoff = BACKOFF, absentMs = ABSENT_MS, watchSeconds = WATCH_SECONDS, patience = PATIENCE } = options
    const clock = restless(options.clock ?? systemClock)
    this.#clock = clock
    this.#client = new ApiClient(options)
    this.#server = options.server
    this.#held = new ObjectCache(options.lastGood)
    const say = (): void => {
      this.#say()
    }
    this.#link = new Reconnect({ transport: this.#client.transport, clock, backoff, onChange: say })
    const shared = {
      ...{ client: this.#client, clock, held: this.#held, link: this.#link, backoff, absentMs, watchSeconds, patience },
      presence: new ApiDiscovery({ client: this.#client, clock, freshMs: absentMs / 10 }),
      emit: (events: readonly SourceEvent[]) => this.#emit(events),
      onHeard: () => this.#wake(),
      onListed: (watched: WatchedKind) => this.#listed(watched),
      onWentBack: (version: string) => {
        for (const kind of this.#kinds) kind.wentBack(version)
      },
      past: new VersionHistory({
        ...{ client: this.#client, clock, pauseMs: watchSeconds * 500 },
        versions: () => this.#kinds.map(({ latest }) => latest),
      }),
      onStatus: say,
      turns: new Semaphore(LISTS_AT_ONCE),
    }
    const all = watchedOn(options.node)
    this.#unlisted = new Set(all)
    this.#kinds = all.map((watched) => new KindWatch(watched, shared))
  }

  /** Never rejects: what is wrong is in the status, and is tried again. Runs once. */
  async run(sink: Sink, signal: AbortSignal): Promise<void> {
    this.#sink = sink
    sink.apply(this.#held.recall())
    try {
      await Promise.all(this.#kinds.map((kind) => kind.run(signal)))
    } finally {
      this.#waking?.()
      await this.#client[Symbol.asyncDispose]()
    }
  }

  /** What was heard so far may not be all, nor may the connection be one any more: watches go on by another, at
   * once, from where they were. */
  async refresh(reason: string): Promise<void> {
    await this.#client.transport.drop(new UnreachableError(reason))
    this.#clock.wake()
  }

  /** "/api/v1/namespaces/default/services/web" for each object that the server has; undefined for others. */
  placesOf(fields: readonly Rejected[]): readonly (string | undefined)[] {
    return fields.map((rejected) => this.#held.placeOf(rejected))
  }

  /** By kind. */
  facts(): ReadonlyMap<string, KindFacts> {
    return new Map(this.#kinds.map(({ watched, facts }) => [watched.entry.kind, facts]))
  }

  /** For what else is asked of the server: one connection serves both. */
  get client(): ApiClient {
    return this.#client
  }

  /** Where the API server has been found: what must stay reachable whatever policy says. */
  servers(): { readonly addresses: readonly Addr[]; readonly port: Port } {
    const addresses = this.#client.transport.addresses.flatMap((text) => tryParseAddr(text) ?? [])
    return { addresses, port: parsePort(this.#server.port) }
  }

  #emit(events: readonly SourceEvent[]): void {
    if (events.length > 0) this.#sink?.apply(events)
    this.#held.remember()
    this.#say()
  }

  /** What ailed one kind may have ailed all, and is over: no kind waits for the time of its next attempt. */
  #wake(): void {
    this.#waking ??= this.#clock.after(Math.max(0, this.#wokenAt + WAKE_MS - this.#clock.now()), () => {
      this.#waking = undefined
      this.#wokenAt = this.#clock.now()
      // a connection that does not last is heard as well, and is not to be made sooner for that
      if (this.#link.lost === undefined) this.#clock.wake()
    })
  }

  #listed(watched: WatchedKind): void {
    if (!this.#unlisted.delete(watched) || this.#unlisted.size > 0) return
    this.#sink?.synced()
    this.#say()
  }

  #say(): void {
    const now = { revision: this.#held.problemRevision, unavailable: this.#unavailable() }
    if (deepEqual(now, this.#said)) return
    this.#said = now
    const kept = this.#held.kept()
    this.#sink?.status({ unavailable: now.unavailable, problems: this.#held.problems(), ...(kept.length === 0 ? {} : { kept }) })
  }

  #unavailable(): SourceStatus['unavailable'] {
    const failing = this.#kinds.flatMap(({ failing }) => failing ?? [])
    const { lost } = this.#link
    // a server that refuses a client may end its connections too: then the refusal is the reason
    const why = failing.find(({ brief }) => brief !== true) ?? failing[0]
    const first = lost?.brief === true ? (why ?? lost) : (lost ?? why)
    if (first === undefined) return undefined
    const more = first !== lost && failing.length > 1 ? ` (and ${failing.length - 1} other kinds)` : ''
    const stays = this.#unlisted.size > 0 ? '' : ': its last good state stays in force'
    return { reason: `${first.reason}${more}${stays}`, since: Math.min(...[first, ...failing].map(({ since }) => since)) }
  }
}

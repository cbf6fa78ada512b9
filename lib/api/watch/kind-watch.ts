// SPDX-License-Identifier: Apache-2.0
/** The objects of one kind: listed once, then watched, from where the watch ended when it ends. Layer: lib/api. */
import { inSlices, type Sliced } from '../../base/async/slices.ts'
import { backoffMs } from '../../base/backoff.ts'
import { sleepOn } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { isObject } from '../../base/object.ts'
import type { SourceEvent } from '../../store/source.ts'
import { PAGE } from '../client.ts'
import { Deadline } from '../connection/deadline.ts'
import { ApiError, isExpired, isFault, isWrongRequest, refusalOf, UnreachableError, UnreadableError } from '../errors.ts'
import { metadataOf, textIn } from './object-cache.ts'
import type { KindFacts, Shared } from './kind-shared.ts'
import type { Lost } from './reconnect.ts'
import { isBelow, wentBack } from './version-history.ts'
import type { Transport } from '../connection/transport.ts'
import type { WatchedKind } from './watch-list.ts'

/** Where nothing tells that the server has gone, the end of the watch must. */
const UNPINGED_SECONDS = 60
const SPREAD_MS = 250
/** In a row, without this being the kind's own trouble. */
const LOST_CONNECTIONS = 3
/** A watch that ends sooner has failed. */
const SHORT_MS = 5000
/** One that has begun and is still there after this is heard: refusals come as first events as well. */
const HEARD_MS = 1000

export class KindWatch {
  readonly watched: WatchedKind
  readonly #shared: Shared
  /** undefined: as JSON, from which more can be read */
  #message: WatchedKind['message']
  readonly #counts = { lists: 0, watches: 0, events: 0, unreadable: 0 }
  #lastEventAt: number | undefined
  /** where the next watch begins; undefined: list first */
  #version: string | undefined
  /** the last that it was, whatever has become of it */
  #latest = ''
  /** the watch ended before it was due, and its server may be another one */
  #isCut = false
  /** ends the watch that there is */
  #cut: (reason: Error) => void = () => undefined
  /** the watch has begun */
  #isHeard = false
  /** what only a list may cure, in a row */
  #faults = 0
  /** where they were: the next watch begins there after all when the list fails */
  #faulty: string | undefined
  /** in a row */
  #failures = 0
  /** lists in a row that expired between two pages */
  #expiredLists = 0
  #failing: Lost | undefined
  #firstFailure = 0
  /** that of the last request */
  #connection: Transport['connected']

  constructor(watched: WatchedKind, shared: Shared) {
    this.watched = watched
    this.#message = watched.message
    this.#shared = shared
  }

  /** Why its objects are not up to date though the server can be reached, and since when. A single failure is none. */
  get failing(): Lost | undefined {
    return this.#failing
  }

  /** The last version that was heard. */
  get latest(): string {
    return this.#latest
  }

  get facts(): KindFacts {
    return { ...this.#counts, objects: this.#shared.held.count(this.watched.entry.kind), lastEventAt: this.#lastEventAt }
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      try {
        this.#connection = this.#shared.client.transport.connected
        await this.#round(signal)
      } catch (thrown) {
        if (isOver()) return
        if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
        await this.#recover(thrown, signal).catch(ignoreWhen(signal))
      }
    }
  }

  /** The server is at this version. Versions after it are none of its own: what has one is read again whatever it
   * is. */
  wentBack(version: string): void {
    if (!isBelow(version, this.#latest)) return
    this.#version = this.#faulty = undefined
    this.#latest = ''
    this.#shared.held.forgetVersions(this.watched)
    this.#cut(wentBack(`watch of ${this.watched.kind}`, version))
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { clock, presence, past, turns, absentMs, onListed, onWentBack, emit, held } = this.#shared
    const before = this.#version === undefined ? undefined : await (this.#isCut ? past.before(this.#version) : past.look())
    if (before !== undefined) onWentBack(before)
    if (this.#version === undefined) {
      if (this.watched.optional && !(await presence.has(this.watched, signal))) {
        emit(held.keepOnly(this.watched, -1))
        this.#worked()
        onListed(this.watched)
        await clock.sleep(absentMs * (0.75 + Math.random() / 2), signal)
        return
      }
      this.#latest = this.#version = await turns.run(() => this.#list(signal))
      this.#faulty = undefined
      onListed(this.watched)
    }
    const began = clock.now()
    this.#isCut = true
    this.#isHeard = false
    await this.#watch(this.#version, signal)
    if (clock.now() - began < SHORT_MS) await this.#wait(signal)
    else this.#failures = this.#faults = 0
  }

  /** Resolves when it is worth trying again. */
  async #recover(thrown: ApiError | UnreachableError, signal: AbortSignal): Promise<void> {
    const { client, link, clock, onStatus } = this.#shared
    if (thrown instanceof UnreachableError) {
      // so that not all nodes are at the door at once; and requests fail before their connection is known to be gone
      await clock.sleep(Math.random() * SPREAD_MS, signal)
      if (client.transport.connected === undefined) {
        await link.restored(errorText(thrown), signal)
        // what failed before was another server, or this one's start
        this.#failures = 0
        this.#shared.onHeard()
        return
      }
    }
    // a problem of one object is then reported for that one, and the others are there
    if (thrown instanceof UnreadableError && this.#message !== undefined) {
      this.#message = undefined
      this.#counts.unreadable++
    }
    const expired = isExpired(thrown)
    if (this.#version === undefined && !expired) [this.#version, this.#faulty] = [this.#faulty, undefined]
    else if (isFault(thrown, this.#isHeard) && isPowerOfTwo(++this.#faults)) [this.#faulty, this.#version] = [this.#version, undefined]
    // a connection that ends takes the requests of all kinds with it
    const tolerated = client.transport.connected === this.#connection ? 0 : LOST_CONNECTIONS
    // 410 Gone and the like: without a version the next round lists again
    if (expired || isWrongRequest(thrown)) this.#version = undefined
    if (this.#failures === 0) this.#firstFailure = clock.wall()
    else if (!expired && this.#failures > tolerated) {
      const brief = thrown instanceof UnreachableError ? { brief: true as const } : {}
      this.#failing = { reason: errorText(thrown), since: this.#firstFailure, ...brief }
      onStatus()
      if (thrown instanceof ApiError && thrown.status >= 500) await link.leave(this.#connection, errorText(thrown))
    }
    const { retryAfterMs = 0 } = thrown instanceof ApiError ? thrown : {}
    await this.#wait(signal, retryAfterMs)
  }

  async #wait(signal: AbortSignal, leastMs = 0): Promise<void> {
    const { clock, backoff } = this.#shared
    const ms = backoffMs(backoff, this.#failures++, Math.random())
    // it says the same to all nodes, which are not to be back at the same moment
    const asked = leastMs * (1 + Math.random() / 2)
    // a pause that the server asks for is kept, even if another kind hears from it meanwhile
    if (asked > 0) await sleepOn(clock, asked, signal)
    if (ms > asked) await clock.sleep(ms - asked, signal)
  }

  #worked(): void {
    if (this.#failing === undefined) return
    this.#failing = undefined
    this.#shared.onHeard()
    this.#shared.onStatus()
  }

  /** Its version. What is held already and has not changed is not even parsed. */
  async #list(signal: AbortSignal): Promise<string> {
    const { client, held, emit } = this.#shared
    const { fieldSelector } = this.watched
    const list = ++this.#counts.lists
    // pages belong to one version, which may be gone before the last of them: then in one go. Whatever else fails, a
    // server that has too much to do is not asked for more
    const limit = this.#expiredLists > 1 ? 0 : PAGE
    const options = {
      limit,
      signal,
      timeoutMs: this.#shared.patience.pageMs,
      message: this.#message,
      ...(fieldSelector && { fieldSelector }),
    }
    let version = ''
    try {
      for await (const page of client.pages(this.watched, options)) {
        // one that never ends is no good list
        if (page.continue === '') this.#worked()
        if (isBelow(page.resourceVersion, this.#latest)) this.#shared.onWentBack(page.resourceVersion)
        await this.#takeEach(page.items, (item) => held.put(this.watched, item, list), signal)
        version = page.resourceVersion
      }
    } catch (thrown) {
      this.#expiredLists = isExpired(thrown) ? this.#expiredLists + 1 : 0
      throw thrown
    }
    this.#expiredLists = 0
    emit(held.keepOnly(this.watched, list))
    return version
  }

  /** Those before one that cannot be taken are passed on all the same: they are held by now, and the server does not
   * repeat its events. */
  async #takeEach<T>(values: Iterable<T>, take: (value: T) => Sliced<readonly SourceEvent[]>, signal: AbortSignal): Promise<void> {
    const events: SourceEvent[] = []
    const work = function* (): Sliced<void> {
      for (const value of values) {
        events.push(...(yield* take(value)))
        yield
      }
    }
    try {
      await inSlices(work(), this.#shared.clock, signal)
    } finally {
      this.#shared.emit(events)
    }
  }

  /** Until the server ends it. */
  async #watch(from: string, signal: AbortSignal): Promise<void> {
    const { client, clock, watchSeconds } = this.#shared
    const { graceMs } = this.#shared.patience
    this.#counts.watches++
    using deadline = new Deadline(clock, signal)
    deadline.in(graceMs)
    const most = client.transport.connected?.protocol === 'h1' ? Math.min(UNPINGED_SECONDS, watchSeconds) : watchSeconds
    const seconds = Math.ceil(most * (0.5 + Math.random() / 2))
    const batches = client.watch(this.watched, {
      resourceVersion: from,
      timeoutSeconds: seconds,
      fieldSelector: this.watched.fieldSelector,
      message: this.#message,
      signal: deadline.signal,
    })
    let cancel = (): void => undefined
    const began = clock.now()
    this.#cut = (reason) => {
      deadline.end(reason)
    }
    try {
      for await (const values of batches) {
        this.#isHeard = true
        deadline.in(seconds * 1000 + graceMs)
        if (values.length === 0) cancel = clock.after(HEARD_MS, () => this.#worked())
        else {
          await this.#takeEach(values, (value) => this.#take(value), deadline.signal)
          this.#worked()
        }
      }
      this.#isCut = clock.now() - began < (seconds - 1) * 1000
    } finally {
      cancel()
      this.#cut = () => undefined
    }
  }

  *#take(value: unknown): Sliced<readonly SourceEvent[]> {
    const { type, object } = isObject(value) ? value : {}
    if (type === 'ERROR') throw refusalOf(object, { status: 500, request: `watch of ${this.watched.kind}` })
    if (!isObject(object) || typeof type !== 'string')
      throw new UnreadableError(`watch of ${this.watched.kind}: an event without an object`)
    const { held, clock } = this.#shared
    const version = textIn(metadataOf(object), 'resourceVersion')
    if (isBelow(version, this.#latest)) {
      this.#shared.onWentBack(version)
      throw wentBack(`watch of ${this.watched.kind}`, version)
    }
    let events: readonly SourceEvent[] = []
    if (type !== 'BOOKMARK') {
      this.#faults = 0
      this.#counts.events++
      this.#lastEventAt = clock.wall()
      events = type === 'DELETED' ? held.remove(this.watched, object) : yield* held.put(this.watched, object)
    }
    // not before: a watch that ends while it is read begins again in front of it
    if (version !== '') this.#latest = this.#version = version
    return events
  }
}

const isPowerOfTwo = (count: number): boolean => count > 1 && (count & (count - 1)) === 0

function ignoreWhen(signal: AbortSignal): (thrown: unknown) => void {
  return (thrown) => {
    if (!signal.aborted) throw thrown
  }
}

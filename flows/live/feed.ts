// SPDX-License-Identifier: Apache-2.0
/** What changes, to all who follow: each is told of what was added, once, as it comes. Layer: flows. */
import type { FlowCounts, FlowWindow } from '#lib/flows/flow.ts'
import { matches, type Filter } from '../filter/filter.ts'
import type { Change } from '../store/store.ts'

/** A key's window, or what was added to it since it was told. */
export interface Told {
  /** place among all that was told since the start of the process */
  readonly place: number
  /** of the key */
  readonly id: number
  readonly window: FlowWindow
}

/** Followers that are this much behind are told how much they have missed. */
const MOST_WAITING = 5000
/** So many of the last can be told again. */
const REMEMBERED = 4000
/** Answers of a filter that a follower remembers. */
const MOST_KEYS = 50_000

export class Feed {
  readonly #followers = new Set<Follower>()
  #told: Told[] = []
  #place = 0

  get followers(): number {
    return this.#followers.size
  }

  /** of what was told last; 0: nothing was */
  get place(): number {
    return this.#place
  }

  take({ id, window, before }: Change): void {
    const counts = before === undefined ? window.counts : addedTo(before, window.counts)
    if (before !== undefined && Object.values(counts).every((count: number) => count === 0)) return
    const told: Told = { place: ++this.#place, id, window: { ...window, counts } }
    this.#told.push(told)
    if (this.#told.length >= 2 * REMEMBERED) this.#told = this.#told.slice(-REMEMBERED)
    for (const follower of this.#followers) follower.take(told)
  }

  /** One that is told of nothing until it begins. */
  follower(filter: Filter): Follower {
    return new Follower(filter, this.#followers)
  }

  /** One that begins behind a place; undefined when that is not remembered. */
  followerAfter(filter: Filter, place: number): Follower | undefined {
    const first = this.#told[0]?.place ?? this.#place + 1
    if (place > this.#place || place < first - 1) return undefined
    const follower = this.follower(filter)
    for (const told of this.#told.slice(place - first + 1)) follower.take(told)
    follower.begin()
    return follower
  }
}

export class Follower implements Disposable {
  readonly #filter: Filter
  readonly #all: Set<Follower>
  readonly #isWanted = new Map<number, boolean>()
  #waiting: Told[] = []
  #missed = 0
  #wake: () => void = () => undefined

  constructor(filter: Filter, all: Set<Follower>) {
    this.#filter = filter
    this.#all = all
  }

  begin(): void {
    this.#all.add(this)
  }

  take(told: Told): void {
    if (!this.#wants(told)) return
    if (this.#waiting.length < MOST_WAITING) this.#waiting.push(told)
    else this.#missed++
    this.#wake()
  }

  /** All that waits, and how many more it could not keep; after `ms` without any, or when the signal aborts, none. */
  async next(ms: number, signal: AbortSignal): Promise<{ readonly told: readonly Told[]; readonly missed: number }> {
    if (this.#waiting.length === 0 && !signal.aborted) await this.#woken(ms, signal)
    const answer = { told: this.#waiting, missed: this.#missed }
    this.#waiting = []
    this.#missed = 0
    return answer
  }

  [Symbol.dispose](): void {
    this.#all.delete(this)
  }

  #woken(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        this.#wake = () => undefined
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal.addEventListener('abort', done, { once: true })
      this.#wake = done
    })
  }

  #wants({ id, window }: Told): boolean {
    const known = this.#isWanted.get(id)
    if (known !== undefined) return known
    const is = matches(this.#filter, window.key)
    if (this.#isWanted.size >= MOST_KEYS) this.#isWanted.clear()
    this.#isWanted.set(id, is)
    return is
  }
}

function addedTo(before: FlowCounts, now: FlowCounts): FlowCounts {
  const more = (of: keyof FlowCounts): number => Math.max(0, now[of] - before[of])
  return {
    packetsIn: more('packetsIn'),
    packetsOut: more('packetsOut'),
    bytesIn: more('bytesIn'),
    bytesOut: more('bytesOut'),
    started: more('started'),
    completed: more('completed'),
    live: more('live'),
  }
}

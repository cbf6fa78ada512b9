// SPDX-License-Identifier: Apache-2.0
/** Events about what is refused: one for each object and reason, said by one node. Layer: agent/status.
 *
 * An event's name follows from what it says, so a second node finds the event of the first. The API server forgets
 * events after an hour. While something is refused its event is repeated, and counted. What is no longer refused is
 * not repeated, and is forgotten. */
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { eventNamed, eventObject, eventPatch, readEvent, type FoundEvent, type Notice } from '#lib/kube/objects/events.ts'
import type { Due, Subject } from './outbox.ts'
import type { Refusal } from './refusals.ts'
import { lookUp, TIMEOUT_MS, type StatusApi } from './status-api.ts'
import { placeAmong, turnMs } from './leader-order.ts'

/** Before the API server forgets it. */
export const AGAIN_MS = 45 * 60_000
/** For so long a refusal that comes back is the same one. */
const FORGET_MS = 3_600_000
const LOOK_MS = 60_000
const SECOND_MS = 1000
const COMPONENT = 'netplane-agent'

export interface EventsOptions {
  readonly api: StatusApi
  readonly node: string
  readonly refusals: () => readonly Refusal[]
  /** names of all nodes */
  readonly nodes: () => Iterable<string>
  readonly wall: () => number
}

interface Entry {
  /** the latest with this key */
  refusal: Refusal
  /** how long others come first */
  readonly turn: number
  /** of the clock: when it is to be looked after */
  at: number
  /** of the clock: since when it is no longer refused; undefined: it is */
  goneAt: number | undefined
  /** ms since 1970: it was gone and came back then, and that has not been said */
  backAt: number | undefined
}

export class Events implements Subject {
  readonly name = 'events'
  readonly #options: EventsOptions
  readonly #entries = new Map<string, Entry>()

  constructor(options: EventsOptions) {
    this.#options = options
  }

  due(now: number): readonly Due[] {
    const refusals = this.#options.refusals()
    this.#note(refusals, now)
    return refusals.flatMap(({ key }) => {
      const entry = this.#entries.get(key)
      if (entry === undefined || entry.goneAt !== undefined || now < entry.at) return []
      return [{ key, write: (signal) => this.#say(entry, now, signal) }]
    })
  }

  /** Which there are, and which are gone. */
  #note(refusals: readonly Refusal[], now: number): void {
    const present = new Set(refusals.map(({ key }) => key))
    for (const [key, entry] of this.#entries) {
      if (!present.has(key)) entry.goneAt ??= now
      if (entry.goneAt !== undefined && now - entry.goneAt > FORGET_MS) this.#entries.delete(key)
    }
    if (refusals.length === 0) return
    const place = placeAmong(this.#options.node, this.#options.nodes())
    for (const refusal of refusals) {
      const entry = this.#entries.get(refusal.key)
      if (entry?.goneAt !== undefined) {
        entry.goneAt = undefined
        entry.backAt = this.#options.wall()
        entry.at = now + entry.turn
      }
      if (entry !== undefined) entry.refusal = refusal
      const turn = refusal.own ? 0 : turnMs(place, refusal.key)
      if (entry === undefined && turn !== undefined)
        this.#entries.set(refusal.key, { refusal, turn, at: now + turn, goneAt: undefined, backAt: undefined })
    }
  }

  async #say(entry: Entry, now: number, signal: AbortSignal): Promise<void> {
    const { wall } = this.#options
    const warning = await this.#warningOf(entry.refusal, signal)
    if (warning === undefined) {
      entry.at = now + LOOK_MS
      return
    }
    const found = await this.#found(warning, signal)
    const until = found === undefined ? 0 : found.at + AGAIN_MS - wall()
    const isSaid = until > 0 && (entry.backAt === undefined || (found?.at ?? 0) + SECOND_MS > entry.backAt)
    if (!isSaid) await this.#write(warning, found, signal)
    entry.at = now + (isSaid ? until : AGAIN_MS) + entry.turn
    entry.backAt = undefined
  }

  async #found(warning: Notice, signal: AbortSignal): Promise<FoundEvent | undefined> {
    try {
      return readEvent(await this.#options.api.get(eventNamed(warning), { signal, timeoutMs: TIMEOUT_MS }))
    } catch (thrown) {
      if (isRefused(thrown, 'NotFound')) return undefined
      throw thrown
    }
  }

  async #write(warning: Notice, found: FoundEvent | undefined, signal: AbortSignal): Promise<void> {
    const { api, wall } = this.#options
    const options = { signal, timeoutMs: TIMEOUT_MS }
    try {
      if (found === undefined) await api.create(asApiObject(eventObject(warning, wall())), options)
      else await api.patch(eventNamed(warning), eventPatch(found.count + 1, wall()), { type: 'merge', ...options })
    } catch (thrown) {
      // another node was quicker, or the API server has just forgotten it: it is looked at again when it is due
      if (!isRefused(thrown, 'AlreadyExists', 'NotFound')) throw thrown
    }
  }

  /** Of the object as it is now: kubectl looks for events by the uid. undefined: there is none any more. */
  async #warningOf({ object, reason, message }: Refusal, signal: AbortSignal): Promise<Notice | undefined> {
    const { api, node } = this.#options
    const found = await lookUp(api, object, signal)
    if (found === undefined) return undefined
    const { apiVersion, kind, namespace, name } = object
    const involved = { apiVersion, kind, namespace, name, uid: found.metadata.uid }
    return { type: 'Warning', involved, reason, message, component: COMPONENT, host: node }
  }
}

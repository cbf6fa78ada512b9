// SPDX-License-Identifier: Apache-2.0
/** Events of an object of ours: what has changed for it, for people who look later. Layer: lib/control. */
import { errorText } from '../base/errors.ts'
import type { ApiClient } from '../api/client.ts'
import { ApiError, isRefused, UnreachableError } from '../api/errors.ts'
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { eventNamed, eventObject, eventPatch, readEvent, type Notice } from '../kube/objects/events.ts'
import type { Log } from '../obs/log.ts'

export interface EventWriterOptions {
  readonly client: Pick<ApiClient, 'create' | 'get' | 'patch'>
  readonly log: Log
  /** the program that says them */
  readonly component: string
  /** ms since 1970 */
  readonly wall: () => number
}

const TIMEOUT_MS = 5000
/** Times of events are whole seconds, and kubectl sorts those of one second in no order. */
const APART_MS = 1000
/** The times of many that are written at once are not of much later than they are. */
const MOST_AHEAD_MS = 5000

export class EventWriter {
  readonly #options: EventWriterOptions
  #lastAt = 0

  constructor(options: EventWriterOptions) {
    this.#options = options
  }

  /** One that says the same again is counted. An event that cannot be written holds up nothing. */
  async write(
    about: ApiObject,
    { type, reason, message }: Pick<Notice, 'type' | 'reason' | 'message'>,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, log, component } = this.#options
    const at = this.#time()
    const { apiVersion, kind, metadata } = about
    const involved = { apiVersion, kind, namespace: metadata.namespace, name: metadata.name, uid: metadata.uid }
    const notice = { type, involved, reason, message, component, host: '' }
    const options = { signal, timeoutMs: TIMEOUT_MS }
    try {
      await client.create(asApiObject(eventObject(notice, at)), options).catch(async (thrown: unknown) => {
        if (!isRefused(thrown, 'AlreadyExists')) throw thrown
        const { count } = readEvent(await client.get(eventNamed(notice), options))
        await client.patch(eventNamed(notice), eventPatch(count + 1, at), { type: 'merge', ...options })
      })
    } catch (thrown) {
      if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
      log.warn({ reason, error: errorText(thrown) }, 'event.failed')
    }
  }

  /** Each is of a later second than the one before, so that they are read as they came; of more than five at once the
   * last ones share theirs. */
  #time(): number {
    const now = this.#options.wall()
    this.#lastAt = Math.max(now, Math.min(this.#lastAt + APART_MS, now + MOST_AHEAD_MS))
    return this.#lastAt
  }
}

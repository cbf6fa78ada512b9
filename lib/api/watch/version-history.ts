// SPDX-License-Identifier: Apache-2.0
/** Whether an API server still has the past that what is held comes from: a store that is restored from a backup
 * goes back. Layer: lib/api. */
import type { Clock } from '../../base/clock.ts'
import { isObject } from '../../base/object.ts'
import type { ApiClient } from '../client.ts'
import { ApiError } from '../errors.ts'

/** Versions are opaque, but for those that are decimal numbers: these are compared. */
const NUMBER = /^(0|[1-9]\d*)$/

export function isBelow(version: string, other: string): boolean {
  if (!NUMBER.test(version) || !NUMBER.test(other)) return false
  return version.length === other.length ? version < other : version.length < other.length
}

/** As what has expired: only a list tells what there is. */
export function wentBack(what: string, version: string): ApiError {
  const message = `${what}: the API server is at version ${version}, which is before what it said last: its past is another one`
  return new ApiError({ status: 410, reason: 'Expired', message })
}

export interface VersionHistoryOptions {
  readonly client: Pick<ApiClient, 'request'>
  readonly clock: Clock
  /** between two periodic questions, which have no other reason than time */
  readonly pauseMs: number
  /** the last that was heard of each kind */
  readonly versions: () => readonly string[]
}

export class VersionHistory {
  readonly #options: VersionHistoryOptions
  #asking: Promise<string> | undefined
  #lookedAt = -Infinity

  constructor(options: VersionHistoryOptions) {
    this.#options = options
  }

  /** Now and then, for all kinds: the version that the server is at, when that is before what one of them has heard.
   * A kind that got a version far ahead hears nothing more, and its watches begin and end as they should. */
  async look(): Promise<string | undefined> {
    const { clock, pauseMs, versions } = this.#options
    if (clock.now() < this.#lookedAt + pauseMs) return undefined
    this.#lookedAt = clock.now()
    // what is heard while it answers may be after what it says
    const before = versions()
    const now = await this.#ask()
    return before.some((version) => isBelow(now, version)) ? now : undefined
  }

  /** The version that the server is at, when that is before this one. A watch would begin, and say nothing until it
   * is reached. One request is for all callers meanwhile; where it fails nothing is known. */
  async before(version: string): Promise<string | undefined> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    const now = await this.#asking
    return isBelow(now, version) ? now : undefined
  }

  /** All kinds are in one store, and this one is always there. */
  async #ask(): Promise<string> {
    const list = await this.#options.client
      .request({ method: 'GET', path: '/api/v1/namespaces', query: { limit: 1 } })
      .catch(() => undefined)
    const metadata = isObject(list) ? list['metadata'] : undefined
    const version = isObject(metadata) ? metadata['resourceVersion'] : undefined
    return typeof version === 'string' ? version : ''
  }
}

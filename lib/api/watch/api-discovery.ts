// SPDX-License-Identifier: Apache-2.0
/** Which kinds the API server has: definitions come and go while we run. Layer: lib/api. */
import type { Clock } from '../../base/clock.ts'
import { isObject } from '../../base/object.ts'
import { ApiError, UnreachableError } from '../errors.ts'
import type { ApiClient } from '../client.ts'
import { pluralOf, type Collection } from '../resource.ts'

type Names = ReadonlySet<string>

export class ApiDiscovery {
  readonly #client: Pick<ApiClient, 'request'>
  readonly #clock: Clock
  readonly #freshMs: number
  readonly #asked = new Map<string, { readonly at: number; readonly names: Promise<Names> }>()

  /** Kinds of one group ask at about the same time: for so long one answer is for all of them. */
  constructor(options: { readonly client: Pick<ApiClient, 'request'>; readonly clock: Clock; readonly freshMs: number }) {
    this.#client = options.client
    this.#clock = options.clock
    this.#freshMs = options.freshMs
  }

  /** False only when the server's own list of kinds is there and does not have it: a proxy may say "not found" to
   * anything. */
  async has({ apiVersion, kind }: Collection, signal: AbortSignal): Promise<boolean> {
    const now = this.#clock.now()
    const known = this.#asked.get(apiVersion)
    const asked = known !== undefined && now - known.at < this.#freshMs ? known : { at: now, names: this.#namesIn(apiVersion, signal) }
    this.#asked.set(apiVersion, asked)
    try {
      return (await asked.names).has(pluralOf(kind))
    } catch (thrown) {
      this.#asked.delete(apiVersion)
      throw thrown
    }
  }

  async #namesIn(apiVersion: string, signal: AbortSignal): Promise<Names> {
    try {
      const answer = await this.#get(`/apis/${apiVersion}`, signal)
      return new Set(listIn(answer, 'resources').flatMap(({ name }) => (typeof name === 'string' ? [name] : [])))
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown
      const versions = listIn(await this.#get('/apis', signal), 'groups').flatMap((group) => listIn(group, 'versions'))
      if (versions.some(({ groupVersion }) => groupVersion === apiVersion)) throw thrown
      return new Set()
    }
  }

  async #get(path: string, signal: AbortSignal): Promise<unknown> {
    return await this.#client.request({ method: 'GET', path, signal })
  }
}

/** Throws UnreachableError when there is no such list. */
function listIn(value: unknown, key: string): readonly Readonly<Record<string, unknown>>[] {
  const list = isObject(value) ? value[key] : undefined
  if (!Array.isArray(list)) throw new UnreachableError(`the answer has no list of ${key}`)
  return list.filter(isObject)
}

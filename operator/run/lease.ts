// SPDX-License-Identifier: Apache-2.0
/** One of several replicas acts: the holder of a Lease. Layer: operator. */
import { isObject } from '#lib/base/object.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, isRefused, UnreachableError } from '#lib/api/errors.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'

/** How long a holder that says nothing keeps it. */
const HELD_MS = 15_000
const RENEW_MS = 4000
/** A holder that has not renewed it for so long no longer acts, before another may. */
const LOST_MS = 10_000

export interface LeaseOptions {
  readonly client: Pick<ApiClient, 'get' | 'create' | 'update'>
  readonly clock: Clock
  readonly log: Log
  readonly namespace: string
  readonly name: string
  /** ours, unlike that of any other process */
  readonly identity: string
}

/** What the Lease says. Its times are others' clocks: only that it changes counts. */
interface Seen {
  readonly version: string
  readonly at: number
}

export class Lease {
  readonly #options: LeaseOptions
  #seen: Seen | undefined
  #renewedAt: number | undefined

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** It is ours, and still will be for some seconds. */
  get isHeld(): boolean {
    return this.#renewedAt !== undefined && this.#options.clock.now() - this.#renewedAt < LOST_MS
  }

  /** Until the signal aborts; then gives it back. `onChange` is called when it becomes ours or is lost. */
  async run(signal: AbortSignal, onChange: () => void): Promise<void> {
    const { clock, log } = this.#options
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      const before = this.isHeld
      try {
        await this.#round(signal)
      } catch (thrown) {
        if (isOver()) break
        if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
        log.warn({ reason: errorText(thrown) }, 'lease.failed')
      }
      if (this.isHeld !== before) {
        log.info({ identity: this.#options.identity }, this.isHeld ? 'lease.taken' : 'lease.lost')
        onChange()
      }
      await clock.sleep(RENEW_MS, signal).catch(() => undefined)
    }
    if (this.isHeld) await this.#giveBack().catch(() => undefined)
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { client, clock, identity } = this.#options
    const start = clock.now()
    const found = await this.#found(signal)
    if (found === undefined) {
      await client.create(this.#object({ holder: identity, transitions: 0 }), { signal, timeoutMs: RENEW_MS })
      this.#renewedAt = start
      return
    }
    const spec = isObject(found['spec']) ? found['spec'] : {}
    const { holderIdentity: holder = '', leaseTransitions } = spec
    const version = found.metadata.resourceVersion ?? ''
    if (this.#seen?.version !== version) this.#seen = { version, at: start }
    const isFree = holder === '' || start - this.#seen.at >= HELD_MS
    if (holder !== identity && !isFree) {
      this.#renewedAt = undefined
      return
    }
    const transitions = (typeof leaseTransitions === 'number' ? leaseTransitions : 0) + (holder === identity ? 0 : 1)
    try {
      await client.update(this.#object({ holder: identity, transitions, version }), { signal, timeoutMs: RENEW_MS })
      this.#renewedAt = start
    } catch (thrown) {
      if (!isRefused(thrown, 'Conflict')) throw thrown
      this.#renewedAt = undefined
    }
  }

  async #giveBack(): Promise<void> {
    const { client } = this.#options
    const found = await this.#found(AbortSignal.timeout(RENEW_MS))
    if (found?.metadata.resourceVersion === undefined) return
    await client.update(this.#object({ holder: '', transitions: 0, version: found.metadata.resourceVersion }), { timeoutMs: RENEW_MS })
    this.#renewedAt = undefined
  }

  async #found(signal: AbortSignal): Promise<ApiObject | undefined> {
    try {
      return await this.#options.client.get(this.#named, { signal, timeoutMs: RENEW_MS })
    } catch (thrown) {
      if (isRefused(thrown, 'NotFound')) return undefined
      throw thrown
    }
  }

  get #named(): Named {
    const { namespace, name } = this.#options
    return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name }
  }

  #object(of: { readonly holder: string; readonly transitions: number; readonly version?: string }): ApiObject {
    const { apiVersion, kind } = this.#named
    const { namespace, name, clock } = this.#options
    const now = `${new Date(clock.wall()).toISOString().slice(0, -1)}000Z`
    return {
      apiVersion,
      kind,
      metadata: { namespace, name, ...(of.version === undefined ? {} : { resourceVersion: of.version }) },
      spec: {
        holderIdentity: of.holder,
        leaseDurationSeconds: HELD_MS / 1000,
        renewTime: now,
        leaseTransitions: of.transitions,
      },
    }
  }
}

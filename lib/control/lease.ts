// SPDX-License-Identifier: Apache-2.0
/** One of several replicas acts: the holder of a Lease. Layer: lib/control. */
import { isObject } from '../base/object.ts'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { Log } from '../obs/log.ts'
import { getOrNone } from '../api/absent.ts'
import type { ApiClient } from '../api/client.ts'
import { ApiError, isRefused, UnreachableError } from '../api/errors.ts'
import type { ApiObject, Named } from '../api/resource.ts'

/** How long a holder that says nothing keeps it. */
export const HELD_MS = 15_000
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
  /** called after each round without an answer, with the time since the last one; rejects when that is too long */
  readonly onSilent?: (ms: number) => Promise<void>
}

/** What the Lease says. Its times are others' clocks: only that it changes counts. */
interface Seen {
  readonly version: string
  readonly at: number
}

/** Another that has it. */
export interface OtherHolder {
  readonly identity: string
  /** by its own clock; empty: it does not say */
  readonly since: string
  /** the Lease has changed since it was first seen: one that was killed renews nothing */
  readonly isAlive: boolean
}

export class Lease {
  readonly #options: LeaseOptions
  #seen: Seen | undefined
  #other: OtherHolder | undefined
  /** as we wrote it last: nothing is to be read before it is written again */
  #ours: ApiObject | undefined
  #renewedAt: number | undefined
  #answeredAt = 0

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** It is ours, and still will be for some seconds. */
  get isHeld(): boolean {
    return this.#renewedAt !== undefined && this.#options.clock.now() - this.#renewedAt < LOST_MS
  }

  /** Undefined while it is ours, free, or was not seen yet. */
  get other(): OtherHolder | undefined {
    return this.#other
  }

  /** Until the signal aborts; then gives it back. `onChange` is called when it becomes ours or is lost. */
  async run(signal: AbortSignal, onChange: () => void): Promise<void> {
    const { clock, log, onSilent } = this.#options
    const isOver = (): boolean => signal.aborted
    this.#answeredAt = clock.now()
    while (!isOver()) {
      const before = this.isHeld
      try {
        await this.#round(signal)
        this.#answeredAt = clock.now()
      } catch (thrown) {
        if (isOver()) break
        if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
        log.warn({ reason: errorText(thrown) }, 'lease.failed')
        if (thrown instanceof ApiError) this.#answeredAt = clock.now()
        else await onSilent?.(clock.now() - this.#answeredAt)
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
    if (this.#ours !== undefined && (await this.#renewed(this.#ours, signal))) return
    const { client, clock, identity } = this.#options
    const start = clock.now()
    const options = { signal, timeoutMs: RENEW_MS }
    const found = await this.#found(signal)
    if (found === undefined) {
      this.#ours = await client.create(this.#object(undefined, identity), options)
      this.#renewedAt = start
      return
    }
    const { holderIdentity: holder = '', acquireTime: since = '' } = specOf(found)
    const version = found.metadata.resourceVersion ?? ''
    const isChanged = this.#seen !== undefined && this.#seen.version !== version
    if (this.#seen?.version !== version) this.#seen = { version, at: start }
    const isFree = holder === '' || start - this.#seen.at >= HELD_MS
    if (holder !== identity && !isFree) {
      this.#renewedAt = undefined
      this.#other = { identity: holder, since, isAlive: isChanged || this.#other?.isAlive === true }
      return
    }
    this.#other = undefined
    if (!(await this.#renewed(found, signal))) this.#renewedAt = undefined
  }

  /** False: it is another by now, or gone. */
  async #renewed(found: ApiObject, signal: AbortSignal): Promise<boolean> {
    const { client, clock, identity } = this.#options
    const start = clock.now()
    this.#ours = undefined
    try {
      this.#ours = await client.update(this.#object(found, identity), { signal, timeoutMs: RENEW_MS })
      this.#renewedAt = start
      return true
    } catch (thrown) {
      if (!isRefused(thrown, 'Conflict', 'NotFound')) throw thrown
      return false
    }
  }

  async #giveBack(): Promise<void> {
    const found = await this.#found(AbortSignal.timeout(RENEW_MS))
    if (found !== undefined && specOf(found).holderIdentity === this.#options.identity)
      await this.#options.client.update(this.#object(found, ''), { timeoutMs: RENEW_MS })
    this.#renewedAt = undefined
  }

  #found(signal: AbortSignal): Promise<ApiObject | undefined> {
    return getOrNone(this.#options.client, this.#named, { signal, timeoutMs: RENEW_MS })
  }

  get #named(): Named {
    const { namespace, name } = this.#options
    return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name }
  }

  /** With another holder, or the same; the empty one gives it back. Of the version that was found, and no other. */
  #object(found: ApiObject | undefined, holder: string): ApiObject {
    const { apiVersion, kind } = this.#named
    const { namespace, name, clock } = this.#options
    const { holderIdentity, acquireTime, leaseTransitions = 0 } = found === undefined ? {} : specOf(found)
    const now = `${new Date(clock.wall()).toISOString().slice(0, -1)}000Z`
    const isTaken = holder !== '' && holder !== holderIdentity
    return {
      apiVersion,
      kind,
      metadata: { namespace, name, ...(found === undefined ? {} : { resourceVersion: found.metadata.resourceVersion }) },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: HELD_MS / 1000,
        acquireTime: isTaken ? now : acquireTime,
        renewTime: now,
        leaseTransitions: leaseTransitions + Number(isTaken && found !== undefined),
      },
    }
  }
}

interface LeaseSpec {
  readonly holderIdentity?: string
  readonly acquireTime?: string
  readonly leaseTransitions?: number
}

function specOf({ spec }: ApiObject): LeaseSpec {
  const { holderIdentity, acquireTime, leaseTransitions } = isObject(spec) ? spec : {}
  return {
    ...(typeof holderIdentity === 'string' ? { holderIdentity } : {}),
    ...(typeof acquireTime === 'string' ? { acquireTime } : {}),
    ...(typeof leaseTransitions === 'number' ? { leaseTransitions } : {}),
  }
}

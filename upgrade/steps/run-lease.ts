// SPDX-License-Identifier: Apache-2.0
/** One run changes a cluster at a time: the holder of a Lease. Layer: upgrade. */
import { randomBytes } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import type { ApiClient } from '#lib/api/client.ts'
import type { Clock } from '#lib/base/clock.ts'
import { HELD_MS, Lease, type OtherHolder } from '#lib/control/lease.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { Refusal } from '../refusal.ts'
import { StepFailedError } from '../storage/options.ts'

export interface RunLeaseOptions {
  readonly client: Pick<ApiClient, 'get' | 'create' | 'update'>
  readonly clock: Clock
  /** "ada@laptop, process 4711 (9f0c22d1)": unlike that of any other run */
  readonly identity: string
}

/** Where every cluster has a namespace, whatever is installed. */
const PLACE = { namespace: 'kube-system', name: 'netplane-upgrade' }
const RESOURCE = `Lease ${PLACE.namespace}/${PLACE.name}`
const STEP = 'lease'
const LOOK_MS = 100
/** For a server that does not answer, and before: the one that was killed. */
const TAKE_MS = 60_000
/** A server that is begun anew is away for some of it. */
const RETAKE_MS = 120_000

export function runIdentity(): string {
  return `${userName()}@${hostname()}, process ${process.pid} (${randomBytes(4).toString('hex')})`
}

/** An account of a container may have no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.() ?? '?'}`
  }
}

export class RunLease implements AsyncDisposable {
  readonly #clock: Clock
  readonly #lease: Lease
  readonly #stop = new AbortController()
  readonly #lost = new AbortController()
  readonly #ended: Promise<void>
  /** why it was not renewed */
  #reason = ''

  private constructor({ client, clock, identity }: RunLeaseOptions) {
    this.#clock = clock
    const log = {
      ...silentLog,
      warn: ({ reason }: Readonly<Record<string, unknown>>): void => {
        this.#reason = String(reason)
      },
    }
    this.#lease = new Lease({ client, clock, log, ...PLACE, identity })
    this.#ended = this.#lease.run(this.#stop.signal, () => {
      const { other } = this.#lease
      if (other !== undefined) this.#lost.abort(new StepFailedError(STEP, [lostText(other)]))
    })
  }

  /** Refused by a run that is at work. One that was killed is waited for: its time is over soon. */
  static async take(options: RunLeaseOptions, signal: AbortSignal): Promise<RunLease | Refusal> {
    const run = new RunLease(options)
    try {
      const refusal = await run.#taken(signal)
      if (refusal === undefined) return run
      await run[Symbol.asyncDispose]()
      return refusal
    } catch (thrown) {
      await run[Symbol.asyncDispose]()
      throw thrown
    }
  }

  /** Aborts when another run has taken it. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Before anything is begun. Waits for a server that was away. Throws StepFailedError where it is not ours. */
  async ensure(signal: AbortSignal): Promise<void> {
    const end = this.#clock.now() + RETAKE_MS
    while (!this.#lease.isHeld) {
      this.#lost.signal.throwIfAborted()
      if (this.#clock.now() >= end) throw new StepFailedError(STEP, [`${RESOURCE} was not renewed: ${this.#reason}`])
      await this.#clock.sleep(LOOK_MS, AbortSignal.any([signal, this.#lost.signal]))
    }
  }

  /** Gives it back. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #taken(signal: AbortSignal): Promise<Refusal | undefined> {
    const end = this.#clock.now() + TAKE_MS
    while (!this.#lease.isHeld) {
      const { other } = this.#lease
      if (other?.isAlive === true) return heldRefusal(other)
      if (this.#clock.now() >= end) throw new StepFailedError(STEP, [`${RESOURCE} cannot be had: ${this.#reason}`])
      await this.#clock.sleep(LOOK_MS, signal)
    }
    return undefined
  }
}

function heldRefusal(other: OtherHolder): Refusal {
  return {
    ...{ resource: RESOURCE, field: '', value: undefined },
    reason: `another run is at work: that of ${holderText(other)}`,
    remedy: `Wait for its end, or stop it there. After a kill there is nothing to do: begin again, and ${HELD_MS / 1000} s after its last word the Lease is free`,
  }
}

function lostText(other: OtherHolder): string {
  return `${RESOURCE} was lost to another run: that of ${holderText(other)}`
}

function holderText({ identity, since }: OtherHolder): string {
  return since === '' ? identity : `${identity}, since ${since.replace(/\.\d+Z$/, 'Z')}`
}

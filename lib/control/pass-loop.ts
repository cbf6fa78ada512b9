// SPDX-License-Identifier: Apache-2.0
/** When a pass runs: whenever something has changed, as long as this process is the one that acts.
 * Layer: lib/control. */
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { ApiError, UnreachableError } from '../api/errors.ts'
import type { Health } from '../obs/health.ts'
import type { Log } from '../obs/log.ts'
import type { Lease } from './lease.ts'

/** Compares what is with what is asked for, and writes. */
export interface Pass {
  /** Another process may have written something since the last one. */
  forget(): void
  /** True when it is to be done again after a while, also if nothing changes. */
  run(signal: AbortSignal): Promise<boolean>
}

export interface PassLoopOptions {
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  /** everything has been read once */
  readonly view: { readonly synced: boolean }
  readonly lease: Pick<Lease, 'isHeld'>
  readonly pass: Pass
  /** called with how long each pass took */
  readonly onPass: (seconds: number) => void
}

/** Changes come in bursts; one pass takes all that came within this time. */
const GATHER_MS = 50
/** After a pass that is to be done again. */
const AGAIN_MS = 2000
/** The same once nothing has changed for {@link PATIENT_MS}: a node may be away for days. */
const SELDOM_MS = 10_000
const PATIENT_MS = 120_000

export class PassLoop {
  readonly #of: PassLoopOptions
  #wake: () => void = () => undefined
  #isDue = true
  #cancel: () => void = () => undefined
  #held = false
  #changedAt: number

  constructor(of: PassLoopOptions) {
    this.#of = of
    this.#changedAt = of.clock.now()
  }

  /** Something may be otherwise than it was. */
  wake(): void {
    this.#changedAt = this.#of.clock.now()
    this.#look()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, view, lease, health, pass } = this.#of
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await this.#due(signal)
      await clock.sleep(GATHER_MS, signal).catch(() => undefined)
      this.#isDue = false
      if (isOver() || !view.synced) continue
      health.pass('synced')
      // another process may have acted meanwhile
      if (lease.isHeld && !this.#held) pass.forget()
      this.#held = lease.isHeld
      if (!this.#held) continue
      const start = clock.now()
      try {
        if (await pass.run(signal)) this.#again()
      } catch (thrown) {
        if (isOver()) break
        if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
        log.warn({ reason: errorText(thrown) }, 'pass.failed')
        this.#again()
      }
      this.#of.onPass((clock.now() - start) / 1000)
    }
    this.#cancel()
  }

  #due(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        signal.removeEventListener('abort', end)
        resolve()
      }
      this.#wake = end
      signal.addEventListener('abort', end)
      if (this.#isDue || signal.aborted) end()
    })
  }

  #look(): void {
    this.#isDue = true
    this.#wake()
  }

  #again(): void {
    const { clock } = this.#of
    this.#cancel()
    this.#cancel = clock.after(clock.now() - this.#changedAt < PATIENT_MS ? AGAIN_MS : SELDOM_MS, () => {
      this.#look()
    })
  }
}

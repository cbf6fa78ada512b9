// SPDX-License-Identifier: Apache-2.0
/** When to apply: at once after quiet, at intervals in a burst, later after a failure; never twice at a time.
 * Layer: agent/dataplane. */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '#lib/base/clock.ts'

/** In a burst a pass starts no sooner after the last one than that took, so at most half of the time goes into
 * passes; this bounds the wait. */
const LONGEST_PAUSE_MS = 100

export class ApplyLoop {
  readonly #clock: Clock
  #marked = false
  #wake: (() => void) | undefined
  #since: number | undefined
  /** no pass before this time */
  #earliest = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Something is to be looked at. Costs nothing; what is marked in one turn of the event loop is done in one pass. */
  mark(): void {
    this.#marked = true
    this.#wake?.()
  }

  /** for how long the present pass has been running, in ms; 0 when none is */
  get busyMs(): number {
    return this.#since === undefined ? 0 : this.#clock.now() - this.#since
  }

  /** Runs passes until the signal aborts; one that has begun is finished. A pass brings the kernel to what is wanted
   * now, and resolves with the ms after which it is to run again though nothing changed. Rejects with what a pass
   * throws: that is a defect. */
  async run(pass: () => Promise<number | undefined>, signal: AbortSignal): Promise<void> {
    let again: number | undefined
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await this.#work(again, signal)
      await this.#turn(signal)
      if (isOver()) return
      this.#marked = false
      const start = this.#clock.now()
      this.#since = start
      again = await pass()
      this.#since = undefined
      const end = this.#clock.now()
      // a pass that stopped half way to let others have a turn goes on at once
      this.#earliest = again === 0 ? end : end + Math.min(LONGEST_PAUSE_MS, end - start)
    }
  }

  /** Until there is a mark, or `ms` have passed. */
  #work(ms: number | undefined, signal: AbortSignal): Promise<void> {
    if (this.#marked || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wake = undefined
        cancel?.()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const cancel = ms === undefined ? undefined : this.#clock.after(ms, done)
      this.#wake = done
      signal.addEventListener('abort', done, { once: true })
    })
  }

  /** To the end of this turn of the event loop, or of the pause after the last pass. */
  async #turn(signal: AbortSignal): Promise<void> {
    const pause = this.#earliest - this.#clock.now()
    if (pause < 1) return setImmediate()
    await this.#clock.sleep(pause, signal).catch((thrown: unknown) => {
      if (!signal.aborted) throw thrown
    })
  }
}

/** Of ms after which something wants to run again; undefined: nothing does. */
export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  return times.reduce((a, b) => (a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)))
}

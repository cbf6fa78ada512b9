// SPDX-License-Identifier: Apache-2.0
/** Waits until something is there, and says what is missing when it does not come in time. Layer: agent/cni. */
import type { Clock } from '#lib/base/clock.ts'
import { CniError } from './cni-error.ts'

/** Asked again whenever there is news. */
export class Waiting {
  readonly #clock: Pick<Clock, 'after' | 'now'>
  readonly #asking = new Set<() => void>()

  constructor(clock: Pick<Clock, 'after' | 'now'>) {
    this.#clock = clock
  }

  /** Something may be otherwise than it was. */
  news(): void {
    for (const ask of [...this.#asking]) ask()
  }

  /** `missing`: undefined once nothing is. Rejects with CniError at the deadline, a time of the clock. */
  until(missing: () => string | undefined, deadline: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (done: () => void): void => {
        this.#asking.delete(ask)
        cancel()
        done()
      }
      const ask = (): void => {
        if (missing() === undefined) end(resolve)
      }
      const cancel = this.#clock.after(Math.max(0, deadline - this.#clock.now()), () => {
        const reason = missing()
        if (reason === undefined) end(resolve)
        else end(() => reject(new CniError('tryAgain', `not ready in time: ${reason}`)))
      })
      this.#asking.add(ask)
      ask()
    })
  }

  /** As {@link until}, of what nobody brings news of. */
  async poll(missing: () => string | undefined, deadline: number): Promise<void> {
    for (let reason = missing(); reason !== undefined; reason = missing()) {
      if (this.#clock.now() >= deadline) throw new CniError('tryAgain', `not ready in time: ${reason}`)
      await new Promise<void>((resolve) => this.#clock.after(POLL_MS, resolve))
    }
  }
}

const POLL_MS = 3

// SPDX-License-Identifier: Apache-2.0
/** Waits until something is there, and says what is missing when it does not come in time. Layer: agent/cni. */
import type { Clock } from '#lib/base/clock.ts'
import { CniError } from './cni-error.ts'

/** Asked again whenever there is news. */
export class ConditionWaiter {
  readonly #clock: Pick<Clock, 'after' | 'now'>
  readonly #asking = new Set<() => void>()
  #isOver = false

  constructor(clock: Pick<Clock, 'after' | 'now'>) {
    this.#clock = clock
  }

  /** Something may be otherwise than it was. */
  news(): void {
    for (const ask of [...this.#asking]) ask()
  }

  /** The agent stops: present waits end now, and later ones end at once. */
  end(): void {
    this.#isOver = true
    this.news()
  }

  /** `missing`: undefined once nothing is; throws when it never will be. Rejects with that, or with CniError at the
   * deadline, a time of the clock. */
  until(missing: () => string | undefined, deadline: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const end = (done: () => void): void => {
      this.#asking.delete(ask)
      cancel()
      done()
    }
    const look = (isLate: boolean): void => {
      try {
        const reason = this.#ask(missing)
        if (reason === undefined) end(() => resolve(undefined))
        else if (isLate) throw new CniError('tryAgain', `not ready in time: ${reason}`)
      } catch (thrown) {
        end(() => reject(thrown))
      }
    }
    const ask = (): void => {
      look(false)
    }
    const cancel = this.#clock.after(Math.max(0, deadline - this.#clock.now()), () => {
      look(true)
    })
    this.#asking.add(ask)
    ask()
    return promise
  }

  /** As {@link until}, for a condition that no event announces: polls. */
  async poll(missing: () => string | undefined, deadline: number): Promise<void> {
    for (let reason = this.#ask(missing); reason !== undefined; reason = this.#ask(missing)) {
      if (this.#clock.now() >= deadline) throw new CniError('tryAgain', `not ready in time: ${reason}`)
      await new Promise<void>((resolve) => this.#clock.after(POLL_MS, resolve))
    }
  }

  /** What the work comes to when it does before {@link until} gives up; otherwise it goes on without us. `missing`:
   * what is then said; may throw. */
  async forWork<T>(work: Promise<T>, missing: () => string, deadline: number): Promise<T> {
    let isOver = false
    const over = (): void => {
      isOver = true
      this.news()
    }
    void work.then(over, over)
    await this.until(() => (isOver ? undefined : missing()), deadline)
    return await work
  }

  /** What the work comes to; rejects with CniError at the deadline, and the work goes on without us. `what`: that is
   * then missing. */
  inTime<T>(work: Promise<T>, what: string, deadline: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(Math.max(0, deadline - this.#clock.now()), () => {
        reject(new CniError('tryAgain', `not ready in time: ${what}`))
      })
      void work.then(resolve, reject).finally(cancel)
    })
  }

  #ask(missing: () => string | undefined): string | undefined {
    if (this.#isOver) throw new CniError('tryAgain', 'the agent of this node stops')
    return missing()
  }
}

const POLL_MS = 3

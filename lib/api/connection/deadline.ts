// SPDX-License-Identifier: Apache-2.0
/** An end to waiting that can be put off. Layer: lib/api. */
import type { Clock } from '../../base/clock.ts'
import { UnreachableError } from '../errors.ts'

/** A signal that aborts with another one, or when time is up. */
export class Deadline implements Disposable {
  readonly #controller = new AbortController()
  readonly #clock: Clock
  readonly #outer: AbortSignal
  #cancel: () => void = () => undefined

  constructor(clock: Clock, outer: AbortSignal) {
    this.#clock = clock
    this.#outer = outer
    outer.addEventListener('abort', this.#onAbort)
    if (outer.aborted) this.#onAbort()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** From now; an earlier deadline no longer counts. */
  in(ms: number): void {
    this.#cancel()
    this.#cancel = this.#clock.after(ms, () => {
      this.#controller.abort(new UnreachableError('no answer in time'))
    })
  }

  /** Now, for this reason. */
  end(reason: Error): void {
    this.#controller.abort(reason)
  }

  [Symbol.dispose](): void {
    this.#cancel()
    this.#outer.removeEventListener('abort', this.#onAbort)
  }

  readonly #onAbort = (): void => {
    this.#controller.abort(this.#outer.reason)
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Waits for what others bring about: woken by their notifications, ended by a deadline or a signal.
 * Layer: lib/base. */
import type { Clock } from '../clock.ts'
import { NotYetError } from '../errors.ts'

/** Tells its subscribers that something may be otherwise than it was. */
export class Notifier {
  readonly #subscribers = new Set<() => void>()

  notify(): void {
    for (const run of [...this.#subscribers]) run()
  }

  /** Until the result is disposed of. */
  subscribe(run: () => void): Disposable {
    // each its own, also of one function
    const own = (): void => {
      run()
    }
    this.#subscribers.add(own)
    return {
      [Symbol.dispose]: () => {
        this.#subscribers.delete(own)
      },
    }
  }
}

export interface WaitLimits {
  readonly clock: Pick<Clock, 'after' | 'now'>
  /** a time of the clock */
  readonly deadline: number
  /** ends the wait with its reason */
  readonly signal?: AbortSignal | undefined
}

export interface WaitOptions extends WaitLimits {
  /** what is missing; undefined: nothing, and the wait is over */
  readonly missing: () => string | undefined
  /** after each of their notifications `missing` is asked again */
  readonly wokenBy: readonly Notifier[]
}

/** Rejects with NotYetError at the deadline, with the signal's reason, or with what `missing` throws. */
export async function waitUntil({ missing, wokenBy, clock, deadline, signal }: WaitOptions): Promise<void> {
  signal?.throwIfAborted()
  let reason = missing()
  if (reason === undefined) return
  using stack = new DisposableStack()
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  const look = (): void => {
    try {
      reason = missing()
      if (reason === undefined) resolve(undefined)
    } catch (thrown) {
      reject(thrown)
    }
  }
  const end = (): void => {
    reject(signal?.reason)
  }
  const late = (): void => {
    look()
    reject(new NotYetError(`not ready in time: ${reason ?? ''}`))
  }
  for (const one of wokenBy) stack.use(one.subscribe(look))
  stack.defer(clock.after(Math.max(0, deadline - clock.now()), late))
  signal?.addEventListener('abort', end)
  stack.defer(() => signal?.removeEventListener('abort', end))
  await promise
}

/** What the work comes to if it does so in time. Otherwise this rejects as {@link waitUntil} does, and the work goes
 * on by itself. `what`: that is missing until then. */
export async function withinLimits<T>(work: Promise<T>, what: string, limits: WaitLimits): Promise<T> {
  const settled = new Notifier()
  let missing: string | undefined = what
  const note = (): void => {
    missing = undefined
    settled.notify()
  }
  void work.then(note, note)
  await waitUntil({ ...limits, missing: () => missing, wokenBy: [settled] })
  return await work
}

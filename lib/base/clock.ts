// SPDX-License-Identifier: Apache-2.0
/** Time as something that is passed in, so that tests own it. Layer: lib/base. */

export interface Clock {
  /** ms that only grow, from an arbitrary start; fractions allowed */
  now(): number
  /** ms since 1970, for stamps that people read */
  wall(): number
  /** resolves after `ms`; rejects with the signal's reason when it aborts first, leaving no timer */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** calls `run` once after `ms`; the returned function takes it back */
  after(ms: number, run: () => void): () => void
}

/** The machine's clock. Timers keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  sleep: (ms, signal) => sleepOn(systemClock, ms, signal),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => {
      clearTimeout(timer)
    }
  },
}

/** `sleep` made of `after`: for clocks that have only that. */
export function sleepOn(clock: Pick<Clock, 'after'>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(abortReason(signal))
      return
    }
    const onAbort = (): void => {
      cancel()
      reject(abortReason(signal))
    }
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** A clock like the given one whose sleepers all wake at `wake()`: for waits that something may make pointless. */
export interface RestlessClock extends Clock {
  wake(): void
}

export function restless(clock: Clock): RestlessClock {
  const naps = new Set<() => void>()
  const after = (ms: number, run: () => void): (() => void) => {
    const wake = (): void => {
      cancel()
      run()
    }
    const stop = clock.after(ms, wake)
    const cancel = (): void => {
      stop()
      naps.delete(wake)
    }
    naps.add(wake)
    return cancel
  }
  return {
    now: () => clock.now(),
    wall: () => clock.wall(),
    after: (ms, run) => clock.after(ms, run),
    sleep: (ms, signal) => sleepOn({ after }, ms, signal),
    wake: () => {
      for (const wake of [...naps]) wake()
    },
  }
}

/** Calls `run` every `ms` until the signal aborts; a round starts only after the one before has settled. */
export async function everyMs(
  clock: Clock,
  options: { readonly ms: number; readonly signal: AbortSignal; readonly run: () => void | Promise<void> },
): Promise<void> {
  const isOver = (): boolean => options.signal.aborted
  while (!isOver()) {
    try {
      await clock.sleep(options.ms, options.signal)
    } catch (thrown) {
      if (isOver()) return
      throw thrown
    }
    await options.run()
  }
}

function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason
  return reason instanceof Error ? reason : new Error(String(reason))
}

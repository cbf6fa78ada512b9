// SPDX-License-Identifier: Apache-2.0
/** Waits for a condition, never longer than its limit. Layer: lab. */
import { systemClock } from '#lib/base/clock.ts'
import { longer } from './slowness.ts'

export interface WaitOptions {
  readonly timeoutMs: number
  /** default 10 ms */
  readonly everyMs?: number
  readonly signal?: AbortSignal
}

/** The first value of `look` that is not undefined; undefined when there was none in time. */
export async function waitFor<T>(look: () => T | undefined | Promise<T | undefined>, options: WaitOptions): Promise<T | undefined> {
  const end = systemClock.now() + longer(options.timeoutMs)
  const signal = options.signal ?? new AbortController().signal
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (systemClock.now() >= end) return undefined
    await systemClock.sleep(options.everyMs ?? 10, signal)
  }
}

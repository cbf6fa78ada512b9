// SPDX-License-Identifier: Apache-2.0
/** Long computations in slices, between which the event loop has its turns. Layer: lib/base.
 *
 * The computation is a generator that yields where it may be interrupted. What it yields and how often says nothing
 * about time, so it stays pure: whoever runs it has the clock. */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'

/** What is to be computed. It goes on where it stopped, so nobody may change its inputs before it is done. */
export type Sliced<T> = Generator<undefined, T, undefined>

/** Values that are made as they are taken. undefined: others may have their turn before the next one. */
export type SlicedValues<T> = Iterable<T | undefined>

/** ms after which others have a turn, at the next place where that is possible */
const SLICE_MS = 10

/** The result, without a pause. */
export function atOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Values between two interruptions: to interrupt costs about as much as to look at one. */
const BATCH = 16

/** Does the work with each value. Others may have a turn after every few. */
export function* inBatches<T>(values: Iterable<T>, work: (value: T) => void): Sliced<void> {
  let done = 0
  for (const value of values) {
    work(value)
    if (++done % BATCH === 0) yield
  }
}

/** The same result, with a turn of the event loop after each slice. `signal`: where it aborts the work ends unfinished,
 * and its reason is thrown. */
export async function inSlices<T>(work: Sliced<T>, clock: Pick<Clock, 'now'>, signal?: AbortSignal): Promise<T> {
  let since = clock.now()
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (clock.now() - since < SLICE_MS) continue
    await setImmediate()
    signal?.throwIfAborted()
    since = clock.now()
  }
}

/** Each value, with a turn of the event loop after each slice: for values that are made as they are taken. */
export async function* eachInSlices<T>(values: Iterable<T>, clock: Pick<Clock, 'now'>): AsyncGenerator<T> {
  let since = clock.now()
  for (const value of values) {
    yield value
    if (clock.now() - since < SLICE_MS) continue
    await setImmediate()
    since = clock.now()
  }
}

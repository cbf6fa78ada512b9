// SPDX-License-Identifier: Apache-2.0
/** Which job of a run of tests starts next, beside those that run. Layer: test (pure). */

/** Keeps a processor busy. */
export const BUSY = 1
/** Keeps a processor busy for two thirds of its time. */
export const HALF_BUSY = 0.66
/** Waits half of its time. */
export const WAITING = 0.5
/** Waits most of its time. */
export const MOSTLY_WAITING = 0.3

/** For a machine of two processors. With more of it, tests wait longer for the machine than for what they are about. */
const MOST_WEIGHT = 2

export interface Weighed {
  /** undefined: nothing may run beside it */
  readonly weight: number | undefined
  /** that it takes, as far as is known */
  readonly seconds: number
}

/** undefined: none until one of those that run has ended. Those that bear company come first: of those that have
 * room, the one with most work for a processor. Then the rest, one at a time and in their order. */
export function nextOf<T extends Weighed>(waiting: readonly T[], running: readonly Weighed[]): T | undefined {
  const shared = waiting.filter(({ weight }) => weight !== undefined)
  if (shared.length === 0) return running.length === 0 ? waiting[0] : undefined
  if (running.some(({ weight }) => weight === undefined)) return undefined
  const taken = running.reduce((sum, { weight = 0 }) => sum + weight, 0)
  const fitting = shared.filter(({ weight = 0 }) => taken + weight <= MOST_WEIGHT)
  const work = ({ weight = 0, seconds }: Weighed): number => weight * seconds
  return fitting.toSorted((a, b) => work(b) - work(a))[0]
}

// SPDX-License-Identifier: Apache-2.0
/** Chance that can be had again: all of it comes from one seed. Layer: soak (pure). */
import { InternalError } from '#lib/base/errors.ts'

export class Random {
  #state: number

  /** Seeds are unsigned 32-bit numbers. */
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** At least 0, less than 1. The mixing of a counter that is known as mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** A whole number from 0 up to, but without, `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  /** Throws InternalError when there is nothing to choose from. */
  pick<T>(items: readonly T[]): T {
    const found = items.slice(this.below(items.length))[0]
    if (found === undefined) throw new InternalError('nothing to choose from')
    return found
  }

  /** Each of them or not, in their order. */
  some<T>(items: readonly T[], share = 0.5): T[] {
    return items.filter(() => this.chance(share))
  }

  /** One of the choices, each as often as its weight says. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    return this.pick(choices.flatMap(([weight, choice]) => Array.from({ length: weight }, () => choice)))
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Choices that look random and are the same for a seed. Layer: test. */
import { mix32 } from '#lib/base/hash.ts'
import { lcg } from '../../support/lcg.ts'

export class Dice {
  readonly below: (count: number) => number

  constructor(seed: number) {
    // neighbouring seeds start far apart
    this.below = lcg(mix32(seed))
  }

  one<T>(of: readonly T[]): T {
    const chosen = of[this.below(of.length)]
    if (chosen === undefined) throw new Error('nothing to choose from')
    return chosen
  }

  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  weighted<T>(of: readonly (readonly [weight: number, make: () => T])[]): T {
    let left = this.below(of.reduce((sum, [weight]) => sum + weight, 0))
    for (const [weight, make] of of) {
      if (left < weight) return make()
      left -= weight
    }
    throw new Error('nothing to choose from')
  }
}

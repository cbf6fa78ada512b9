// SPDX-License-Identifier: Apache-2.0
/** Whether a test goes through all that there is of a kind. The gate has a few of each; the stage `matrices` has
 * MATRIX=whole. Layer: test. */
import { SEED } from './seed.ts'

/** All of them, or those that the gate has. */
export function ofMatrix<T>(all: readonly T[], inGate: readonly T[]): readonly T[] {
  return process.env['MATRIX'] === 'whole' ? all : inGate
}

/** All of them, or in the gate one in so many, which the seed chooses; one at least of those that there are. */
export function oneIn<T>(many: number, all: readonly T[]): readonly T[] {
  const step = Math.min(many, all.length)
  return ofMatrix(
    all,
    all.filter((_, number) => number % step === SEED % step),
  )
}

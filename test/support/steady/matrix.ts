// SPDX-License-Identifier: Apache-2.0
/** Whether a test goes through all that there is of a kind. The gate has a few of each; the stage `matrices` has
 * MATRIX=whole. Layer: test. */

/** All of them, or those that the gate has. */
export function ofMatrix<T>(all: readonly T[], inGate: readonly T[]): readonly T[] {
  return process.env['MATRIX'] === 'whole' ? all : inGate
}

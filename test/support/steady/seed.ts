// SPDX-License-Identifier: Apache-2.0
/** The one seed of everything that a test draws; before each test file vitest gives it to fast-check. Layer: test.
 *
 * A run has the same inputs as the one before, so that it fails by what was changed. Others are drawn on purpose:
 * `make test SEED=$RANDOM`, and `make t F=… RUNS=3000 SEED=$RANDOM`. What such a run finds becomes an example of its
 * test; the number stays. */
import fc from 'fast-check'

export const SEED = Number(process.env['SEED'] ?? 1)
// 0 is no seed to libFuzzer
if (!Number.isSafeInteger(SEED) || SEED < 1) throw new Error(`SEED=${process.env['SEED']}: must be a whole number from 1`)

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED })

// SPDX-License-Identifier: Apache-2.0
/** What ends a soak before its time. Layer: soak. */
import { NetplaneError } from '#lib/base/errors.ts'

/** Something is not as it should be; `faults` says what, a line each. */
export class SoakError extends NetplaneError {
  readonly code = 'SOAK'
  readonly faults: readonly string[]

  constructor(where: string, faults: readonly string[]) {
    super({ message: `${where}: ${faults.length} faults` })
    this.faults = faults
  }
}

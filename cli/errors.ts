// SPDX-License-Identifier: Apache-2.0
/** What keeps a command from answering. Layer: cli. */
import { NetplaneError } from '#lib/base/errors.ts'

/** The pinned maps cannot be read. */
export class PinsError extends NetplaneError {
  readonly code = 'PINS'

  constructor(message: string, cause?: unknown) {
    super({ message, cause })
  }
}

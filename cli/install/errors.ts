// SPDX-License-Identifier: Apache-2.0
/** What keeps a step of the installation from being done. Layer: cli. */
import { NetplaneError } from '#lib/base/errors.ts'

export class InstallError extends NetplaneError {
  readonly code = 'INSTALL'

  constructor(message: string, cause?: unknown) {
    super({ message, cause })
  }
}

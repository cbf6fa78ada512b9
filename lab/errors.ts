// SPDX-License-Identifier: Apache-2.0
/** What goes wrong in a lab. Layer: lab. */
import { NetplaneError } from '#lib/base/errors.ts'

/** The lab cannot do what was asked: no such pod, a process that does not come up, a name in use. */
export class LabError extends NetplaneError {
  readonly code = 'LAB'
  /** the place or thing it is about: "node/a", "pod default/web", "lab demo" */
  readonly subject: string

  constructor(subject: string, reason: string, cause?: unknown) {
    super({ message: `${subject}: ${reason}`, cause })
    this.subject = subject
  }
}

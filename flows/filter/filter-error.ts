// SPDX-License-Identifier: Apache-2.0
/** What is wrong with a question. Layer: flows. */

/** A field of a request that cannot be what is asked for. */
export class FilterError extends Error {
  readonly code = 'FILTER'
  /** "filter.actions[0]" */
  readonly field: string

  constructor(field: string, reason: string) {
    super(`${field}: ${reason}`)
    this.field = field
  }
}

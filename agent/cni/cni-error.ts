// SPDX-License-Identifier: Apache-2.0
/** Failures as the agent reports them to container runtimes. Layer: agent/cni (pure). */
import { AddressError, errorText, NetplaneError } from '#lib/base/errors.ts'

/** Of the CNI specification, and from 100 on our own. */
export const CNI_CODES = {
  version: 1,
  unknownContainer: 3,
  environment: 4,
  io: 5,
  decode: 6,
  config: 7,
  tryAgain: 11,
  notReady: 50,
  noAddress: 100,
  differs: 101,
} as const

export class CniError extends NetplaneError {
  readonly code = 'CNI'
  readonly number: number
  readonly details: string

  constructor(what: keyof typeof CNI_CODES, message: string, details = '') {
    super({ message })
    this.number = CNI_CODES[what]
    this.details = details
  }
}

/** Any failure as JSON. What is no mistake of the caller's may be over the next time. */
export function errorAnswer(thrown: unknown, cniVersion: string): string {
  const { number, details } = thrown instanceof CniError ? thrown : { number: numberOf(thrown), details: '' }
  return JSON.stringify({ cniVersion, code: number, msg: errorText(thrown), ...(details === '' ? {} : { details }) })
}

function numberOf(thrown: unknown): number {
  return thrown instanceof AddressError ? CNI_CODES.noAddress : CNI_CODES.tryAgain
}

// SPDX-License-Identifier: Apache-2.0
/** What parsers at the edges answer with. Layer: lib/base. */
import { InternalError } from './errors.ts'

/** Something in an object that we cannot use. */
export interface Rejected {
  /** "Service/default/web"; empty when the object does not even say its name */
  readonly ref: string
  /** where in the object: "spec.ports[1].nodePort"; empty when it is the whole */
  readonly path: string
  /** "must be 1..65535" */
  readonly reason: string
}

/** Of one object no more is told than a reader can want. */
export const MOST_TOLD = 20

/** A value, with the parts of it that were left out; or nothing, with why. `instead` stands in where there was no
 * better one before. */
export type Parsed<T> =
  | { readonly kind: 'ok'; readonly value: T; readonly rejected: readonly Rejected[] }
  | { readonly kind: 'rejected'; readonly rejected: readonly Rejected[]; readonly instead?: T }

/** "Service default/web: spec.ports[1].nodePort: must be 1..65535" */
export function rejectedText(rejected: Rejected): string {
  return [rejected.ref.replace('/', ' '), rejected.path, rejected.reason].filter((part) => part !== '').join(': ')
}

/** Ends an exhaustive switch: a new case is an error of the compiler first. */
export function unreachable(value: never): never {
  throw new InternalError(`unexpected value ${JSON.stringify(value)}`)
}

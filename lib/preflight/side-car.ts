// SPDX-License-Identifier: Apache-2.0
/** Pods whose requests another container of theirs judges. Layer: lib/preflight (pure). */
import { fieldsOf, objectsIn } from '../base/object.ts'

/** Of application layer policy. */
export const SIDE_CAR = 'dikastes'

export function hasSideCar({ spec }: Readonly<Record<string, unknown>>): boolean {
  return objectsIn(fieldsOf(spec)['containers']).some(({ name }) => name === SIDE_CAR)
}

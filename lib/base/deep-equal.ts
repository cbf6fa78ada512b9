// SPDX-License-Identifier: Apache-2.0
/** Equality of plain values: what has not changed need not be done again. Layer: lib/base. */
import { isObject } from './object.ts'

/** Deep equality of primitives, arrays, Maps with primitive keys and plain objects; key order does not matter, a
 * missing key equals undefined. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Number.isNaN(a) && Number.isNaN(b)
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && sameArrays(a, b)
  if (a instanceof Map || b instanceof Map) return a instanceof Map && b instanceof Map && sameMaps(a, b)
  return sameObjects(a, b)
}

function sameArrays(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (!deepEqual(a[at], b[at])) return false
  return true
}

function sameMaps(a: ReadonlyMap<unknown, unknown>, b: ReadonlyMap<unknown, unknown>): boolean {
  if (a.size !== b.size) return false
  for (const [key, value] of a) if (!b.has(key) || !deepEqual(value, b.get(key))) return false
  return true
}

function sameObjects(a: object, b: object): boolean {
  for (const key of Object.keys(a)) if (!deepEqual(Reflect.get(a, key), Reflect.get(b, key))) return false
  for (const key of Object.keys(b)) if (!Object.hasOwn(a, key) && Reflect.get(b, key) !== undefined) return false
  return true
}

/** Whether a value has what another one says. Other fields, as a server's defaults, may be beside it in objects; lists
 * have the same elements. */
export function hasValues(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted))
    return Array.isArray(found) && found.length === wanted.length && wanted.every((value, at) => hasValues(found[at], value))
  if (isObject(wanted)) return isObject(found) && Object.entries(wanted).every(([key, value]) => hasValues(found[key], value))
  return found === wanted
}

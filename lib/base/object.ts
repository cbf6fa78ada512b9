// SPDX-License-Identifier: Apache-2.0
/** Objects with named fields: distinguished from other values of JSON and YAML, and made. Layer: lib/base. */
import { InternalError } from './errors.ts'

/** True for objects with named fields: neither null nor a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Its fields; of what is no object none. For raw JSON that others have written. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

/** The objects of a list; of what is no list none. */
export function objectsIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** A text; empty where it is another value. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** One value for each key. */
export function recordOf<K extends string, V>(keys: readonly K[], valueOf: (key: K) => V): Readonly<Record<K, V>> {
  const record: Partial<Record<K, V>> = {}
  for (const key of keys) record[key] = valueOf(key)
  if (isWhole(record, keys)) return record
  throw new InternalError('a record that lost a key')
}

function isWhole<K extends string, V>(record: Partial<Record<K, V>>, keys: readonly K[]): record is Record<K, V> {
  return keys.every((key) => Object.hasOwn(record, key))
}

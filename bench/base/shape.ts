// SPDX-License-Identifier: Apache-2.0
/** What our own JSON must at least have to be taken for what it should be. Layer: bench (pure). */

/** A list of objects with these fields; what is in the fields is believed. */
export function isListOf<T extends object>(value: unknown, fields: readonly (keyof T & string)[]): value is T[] {
  return Array.isArray(value) && value.every((item) => isObjectWith<T>(item, fields))
}

/** An object with these fields; what is in them is believed. */
export function isObjectWith<T extends object>(value: unknown, fields: readonly (keyof T & string)[]): value is T {
  return typeof value === 'object' && value !== null && fields.every((field) => field in value)
}

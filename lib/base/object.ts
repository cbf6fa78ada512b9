// SPDX-License-Identifier: Apache-2.0
/** Telling objects from the other values of JSON and YAML. Layer: lib/base. */

/** True for objects with named fields: neither null nor a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

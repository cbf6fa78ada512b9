// SPDX-License-Identifier: Apache-2.0
/** Looks at the addon's exports from outside. Layer: test. */

type Callable = (...args: unknown[]) => unknown

/** What every function of sloppy mode has. */
const OF_FUNCTIONS = ['length', 'name', 'prototype', 'arguments', 'caller']

export function isCallable(value: unknown): value is Callable {
  return typeof value === 'function'
}

/** Names of static methods; none for a plain function. */
export function staticNames(value: object): string[] {
  return Object.getOwnPropertyNames(value).filter((key) => !OF_FUNCTIONS.includes(key))
}

/** Names of methods and accessors of a class; undefined for a plain function. */
export function memberNames(value: unknown): string[] | undefined {
  if (typeof value !== 'function') return undefined
  const prototype: unknown = value.prototype
  if (typeof prototype !== 'object' || prototype === null) return undefined
  const names = Object.getOwnPropertyNames(prototype).filter((key) => key !== 'constructor')
  return names.length === 0 ? undefined : names
}

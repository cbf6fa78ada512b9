// SPDX-License-Identifier: Apache-2.0
/** Total orders, so that the same input always comes out in the same sequence. Layer: lib/base. */

export type Compare<T> = (a: T, b: T) => number

/** By UTF-16 code units: the same on every machine, unlike localeCompare. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function compareNumbers(a: number, b: number): number {
  return a - b
}

/** Orders by what `key` says of each. */
export function by<T, K>(key: (value: T) => K, compare: Compare<K>): Compare<T> {
  return (a, b) => compare(key(a), key(b))
}

/** A sorted copy of any iterable. */
export function sorted<T>(values: Iterable<T>, compare: Compare<T>): T[] {
  return [...values].sort(compare)
}

/** The entries of a map, sorted by key. */
export function sortedEntries<V>(map: ReadonlyMap<string, V>): [string, V][] {
  return [...map].sort((a, b) => compareText(a[0], b[0]))
}

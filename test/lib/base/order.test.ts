// SPDX-License-Identifier: Apache-2.0
/** Orders. Layer: test. */
import { expect, test } from 'vitest'
import { by, compareNumbers, compareText, sorted, sortedEntries } from '#lib/base/order.ts'

test('texts go by code units, whatever the locale', () => {
  expect(sorted(['b', 'ä', 'B', 'a', ''], compareText)).toEqual(['', 'B', 'a', 'b', 'ä'])
})

test('values are ordered by a key of each', () => {
  expect(
    sorted(
      [{ at: 10 }, { at: 2 }],
      by((one) => one.at, compareNumbers),
    ),
  ).toEqual([{ at: 2 }, { at: 10 }])
})

test('entries are ordered by key', () => {
  expect(
    sortedEntries(
      new Map([
        ['b', 1],
        ['a', 2],
      ]),
    ),
  ).toEqual([
    ['a', 2],
    ['b', 1],
  ])
})

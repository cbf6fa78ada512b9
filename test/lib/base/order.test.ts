// SPDX-License-Identifier: Apache-2.0
/** Orders. Layer: test. */
import { expect, test } from 'vitest'
import { by, compareNumbers, compareText, inTurn, sorted, sortedEntries } from '#lib/base/order.ts'

test('texts go by code units, whatever the locale', () => {
  expect(sorted(['b', 'ä', 'B', 'a', ''], compareText)).toEqual(['', 'B', 'a', 'b', 'ä'])
})

test('the first order that tells apart decides', () => {
  const order = inTurn(
    by((pair: readonly [number, string]) => pair[0], compareNumbers),
    by((pair) => pair[1], compareText),
  )
  expect(
    sorted(
      [
        [2, 'a'],
        [1, 'b'],
        [1, 'a'],
        [10, ''],
      ] as const,
      order,
    ),
  ).toEqual([
    [1, 'a'],
    [1, 'b'],
    [2, 'a'],
    [10, ''],
  ])
})

test('entries by key', () => {
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

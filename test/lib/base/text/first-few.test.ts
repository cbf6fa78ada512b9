// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { firstFew } from '#lib/base/text/first-few.ts'

test('five are named, of the rest only how many', () => {
  const texts = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  expect([0, 1, 5, 6, 7].map((count) => firstFew(texts.slice(0, count)))).toEqual([
    '',
    'a',
    'a; b; c; d; e',
    'a; b; c; d; e and 1 more',
    'a; b; c; d; e and 2 more',
  ])
})

// SPDX-License-Identifier: Apache-2.0
/** Equality of values. Layer: test. */
import fc from 'fast-check'
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { deepEqual, hasValues } from '#lib/base/deep-equal.ts'

test.each<[unknown, unknown, boolean]>([
  [1, 1, true],
  [Number.NaN, Number.NaN, true],
  [0, -0, true],
  [null, undefined, false],
  [[], {}, false],
  [[1], [1], true],
  [[1], [1, 2], false],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: 1 }, { a: 1, b: undefined }, true],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: 1 }, { a: 1, b: null }, false],
  [new Map([['a', [1]]]), new Map([['a', [1]]]), true],
  [new Map([['a', 1]]), new Map([['b', 1]]), false],
  [new Map(), {}, false],
])('%j and %j: %s', (a, b, expected) => {
  expect(deepEqual(a, b)).toBe(expected)
})

test('JSON values are equal as the platform sees them', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      expect(deepEqual(a, structuredClone(a))).toBe(true)
      expect(deepEqual(a, b)).toBe(
        isDeepStrictEqual(JSON.stringify(a), JSON.stringify(b)) || isDeepStrictEqual(a, b) || (a === 0 && b === 0),
      )
    }),
  )
})

test.each([
  [{ a: 1, b: 2 }, { a: 1 }, true],
  [{ a: { b: 1, c: 2 } }, { a: { b: 1 } }, true],
  [{ a: [{ b: 1, c: 2 }] }, { a: [{ b: 1 }] }, true],
  [{ a: 1 }, { a: 1, b: 2 }, false],
  [{ a: [1, 2] }, { a: [1] }, false],
  [undefined, { a: 1 }, false],
])('%j has the values of %j: %s', (found, wanted, has) => {
  expect(hasValues(found, wanted)).toBe(has)
})

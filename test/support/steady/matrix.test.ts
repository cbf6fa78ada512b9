// SPDX-License-Identifier: Apache-2.0
/** A share of a matrix is never empty. Layer: test. */
import { expect, test, vi } from 'vitest'
import { oneIn } from './matrix.ts'

test.each([
  [4, 8, 2],
  [4, 9, 2],
  [4, 3, 1],
  [15, 1, 1],
  [3, 0, 0],
])('one in %i of %i', (many, count, expected) => {
  const all = Array.from({ length: count }, (_, number) => number)
  vi.stubEnv('MATRIX', undefined)
  const some = oneIn(many, all)
  vi.stubEnv('MATRIX', 'whole')
  expect(oneIn(many, all)).toEqual(all)
  vi.unstubAllEnvs()
  // the seed may draw the odd one
  expect([expected, expected + (count > many && count % many > 0 ? 1 : 0)]).toContain(some.length)
})

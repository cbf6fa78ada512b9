// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { sumOf } from '../../../bench/loss/sum.ts'

test('each kind of loss is summed for itself', () => {
  expect(sumOf([])).toEqual({ lost: 0, refused: 0, socketDrops: 0, softnetDrops: 0 })
  const one = { lost: 1, refused: 2, socketDrops: 3, softnetDrops: 4 }
  expect(sumOf([one, one])).toEqual({ lost: 2, refused: 4, socketDrops: 6, softnetDrops: 8 })
})

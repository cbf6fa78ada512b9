// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SEED } from './seed.ts'

function drawn(parameters?: fc.Parameters<[number]>): readonly number[] {
  const numbers: number[] = []
  fc.assert(
    fc.property(fc.nat(), (number) => void numbers.push(number)),
    parameters,
  )
  return numbers
}

test('each property draws the same again, also where other parameters are given', () => {
  const numbers = drawn({ seed: SEED })
  expect(drawn()).toEqual(numbers)
  expect(drawn({ numRuns: 10 })).toEqual(numbers.slice(0, 10))
  expect(fc.sample(fc.nat(), numbers.length)).toEqual(numbers)
})

test('a property that has a seed of its own keeps it', () => {
  expect(drawn({ seed: SEED + 1 })).not.toEqual(drawn())
})

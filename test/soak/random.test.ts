// SPDX-License-Identifier: Apache-2.0
/** Chance that can be had again. */
import { expect, test } from 'vitest'
import { Random } from '../../soak/random.ts'

const many = <T>(make: (random: Random) => T, seed = 7): T[] => {
  const random = new Random(seed)
  return Array.from({ length: 2000 }, () => make(random))
}

test('one seed has one sequence, another another', () => {
  const numbers = many((random) => random.next())
  expect(many((random) => random.next())).toEqual(numbers)
  expect(many((random) => random.next(), 8)).not.toEqual(numbers)
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...numbers)).toBeLessThan(1)
})

test('all values are chosen, and as often as they weigh', () => {
  expect(new Set(many((random) => random.pick(['a', 'b', 'c'])))).toEqual(new Set(['a', 'b', 'c']))
  const heavy = many((random) =>
    random.weighted([
      [3, true],
      [1, false],
    ]),
  ).filter((one) => one).length
  expect(heavy).toBeGreaterThan(1400)
  expect(heavy).toBeLessThan(1600)
})

test('some of a list keep their order', () => {
  for (const some of many((random) => random.some([1, 2, 3, 4]))) expect(some).toEqual([...some].sort())
})

test('a choice from nothing throws', () => {
  expect(() => new Random(1).pick([])).toThrow(/nothing to choose/)
})

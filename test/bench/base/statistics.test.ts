// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { describe, expect, test } from 'vitest'
import { line, median, medianInterval, minimum, quantile, spread } from '../../../bench/base/statistics.ts'

describe('quantiles', () => {
  test('the middle of an odd count, the mean of the middle two of an even one', () => {
    expect(median([3, 1, 2])).toBe(2)
    expect(median([4, 1, 3, 2])).toBe(2.5)
  })

  test('between neighbours', () => {
    expect(quantile([10, 20], 0.25)).toBe(12.5)
    expect(quantile([7], 0.99)).toBe(7)
  })

  test('the order given is left alone', () => {
    const given = [3, 1, 2]
    expect(minimum(given)).toBe(1)
    expect(given).toEqual([3, 1, 2])
  })

  test('nothing has no middle', () => {
    expect(() => median([])).toThrow(RangeError)
    expect(() => minimum([])).toThrow(RangeError)
  })
})

describe('the interval of the median', () => {
  test('of few values it is their range', () => {
    expect(medianInterval([5, 1, 3])).toEqual({ low: 1, high: 5 })
    expect(medianInterval([2])).toEqual({ low: 2, high: 2 })
  })

  test('of many it leaves out the ends, and holds the median', () => {
    const values = Array.from({ length: 40 }, (_, at) => at)
    const { low, high } = medianInterval(values)
    expect(low).toBe(13)
    expect(high).toBe(26)
    expect(median(values)).toBeGreaterThan(low)
    expect(median(values)).toBeLessThan(high)
  })

  test('one wild value does not widen it', () => {
    const values = [...Array.from({ length: 19 }, () => 1), 1000]
    expect(medianInterval(values)).toEqual({ low: 1, high: 1 })
  })
})

test('spread is half the distance of the quartiles as a part of the median', () => {
  expect(spread([8, 9, 10, 11, 12])).toBeCloseTo(0.1)
  expect(spread([0, 0, 0])).toBe(0)
})

test('line is the one that lies nearest to all points', () => {
  expect(
    line([
      [0, 5],
      [10, 10],
      [20, 15],
    ]),
  ).toEqual({ slope: 0.5, base: 5 })
  expect(
    line([
      [0, 0],
      [1, 2],
      [2, 1],
    ]).slope,
  ).toBeCloseTo(0.5)
})

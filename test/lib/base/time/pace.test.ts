// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { Pace } from '#lib/base/time/pace.ts'

test('each has its burst, then waits for its turn, and is refused when that is too far away', () => {
  const pace = new Pace({ perSecond: 10, burst: 2 })
  expect([1, 2, 3, 4].map(() => pace.take('a', 1000, 200))).toEqual([0, 0, 100, 200])
  expect(pace.take('a', 1000, 200)).toBeUndefined()
  expect(pace.take('b', 1000, 200)).toBe(0)
  // what was refused is not counted
  expect(pace.take('a', 1100, 200)).toBe(200)
})

test('who did nothing for a while is forgotten', () => {
  const pace = new Pace({ perSecond: 10, burst: 2 })
  for (let who = 0; who < 100; who++) pace.take(String(who), who * 1000, 200)
  expect(pace.size).toBe(1)
})

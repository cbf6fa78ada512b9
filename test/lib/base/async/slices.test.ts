// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { atOnce, eachInSlices, inSlices, type Sliced } from '#lib/base/async/slices.ts'

/** Adds up, in steps that take `ms` each by the clock. */
function* sum(numbers: readonly number[], step: () => void): Sliced<number> {
  let total = 0
  for (const number of numbers) {
    total += number
    step()
    yield
  }
  return total
}

test('work at once and in slices has one result', async () => {
  let now = 0
  const step = (): void => {
    now += 30
  }
  expect([atOnce(sum([1, 2, 3], step)), await inSlices(sum([1, 2, 3], step), { now: () => now })]).toEqual([6, 6])
})

test('others have a turn after each 10 ms, and none before', async () => {
  let now = 0
  const seen: string[] = []
  const work = sum([1, 2, 3, 4], () => {
    now += 5
    seen.push(`step at ${now}`)
    if (seen.length === 1) setImmediate(other)
  })
  const other = (): void => {
    seen.push('other')
  }
  await inSlices(work, { now: () => now })
  expect(seen).toEqual(['step at 5', 'step at 10', 'other', 'step at 15', 'step at 20'])
})

test('others have a turn after each 10 ms of values that are taken one by one', async () => {
  let now = 0
  const seen: (string | number)[] = []
  for await (const value of eachInSlices([1, 2, 3], { now: () => now })) {
    now += 5
    seen.push(value)
    if (value === 1) setImmediate(() => seen.push('other'))
  }
  expect(seen).toEqual([1, 2, 'other', 3])
})

test('what the work throws is what the promise rejects with', async () => {
  const fails = sum([1], () => {
    throw new RangeError('no')
  })
  await expect(inSlices(fails, { now: () => 0 })).rejects.toThrow(RangeError)
})

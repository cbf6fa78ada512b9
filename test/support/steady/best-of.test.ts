// SPDX-License-Identifier: Apache-2.0
import { expect, test, vi } from 'vitest'
import { withinBestOfThree } from './best-of.ts'

test.each([
  [[5], []],
  [[15, 10, 5], ['in time at last: 15, 10, 5 ms, of less than 10']],
])('what took %j ms is in time, and tells %j', async (times, told) => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  const tries: number[] = []
  await withinBestOfThree(10, (at) => Promise.resolve(times[tries.push(at) - 1] ?? 0))
  expect(warn.mock.calls.flat()).toEqual(told)
  expect(tries).toEqual(times.map((_time, at) => at + 1))
  warn.mockRestore()
})

test('what is late three times is late, and so is what fails at once', async () => {
  await expect(withinBestOfThree(10, (at) => Promise.resolve(10 * at))).rejects.toThrow('late each time: 10, 20, 30 ms, not less than 10')
  await expect(withinBestOfThree(10, () => Promise.resolve(NaN))).rejects.toThrow('late each time: NaN, NaN, NaN ms, not less than 10')
  await expect(withinBestOfThree(10, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})

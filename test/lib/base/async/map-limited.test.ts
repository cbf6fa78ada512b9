// SPDX-License-Identifier: Apache-2.0
/** Work on each of a list, so many at once. Layer: test. */
import { expect, test } from 'vitest'
import { mapLimited } from '#lib/base/async/map-limited.ts'

test('so many run at once, and results are in the order of the list', async () => {
  let running = 0
  let most = 0
  const results = await mapLimited([30, 1, 20, 1, 10, 1], 3, async (ms) => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, ms))
    running--
    return ms * 2
  })
  expect(results).toEqual([60, 2, 40, 2, 20, 2])
  expect(most).toBe(3)
})

test('of those that fail the first of the list is told, once all have ended', async () => {
  const ended: number[] = []
  const work = async (one: number): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 10 - one))
    ended.push(one)
    if (one !== 3) throw new Error(String(one))
  }
  await expect(mapLimited([1, 2, 3], 3, work)).rejects.toThrow('1')
  expect(ended).toEqual([3, 2, 1])
})

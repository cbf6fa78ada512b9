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
  const ends = [1, 2, 3].map(() => Promise.withResolvers<undefined>())
  const work = async (one: number): Promise<void> => {
    await ends[one - 1]?.promise
    ended.push(one)
    // each lets the one before it end
    ends[one - 2]?.resolve(undefined)
    if (one !== 3) throw new Error(String(one))
  }
  const all = mapLimited([1, 2, 3], 3, work)
  ends[2]?.resolve(undefined)
  await expect(all).rejects.toThrow('1')
  expect(ended).toEqual([3, 2, 1])
})

// SPDX-License-Identifier: Apache-2.0
/** Times of a locked datastore as an operator sees them. Layer: test. */
import { expect, test } from 'vitest'
import { LockTimes, waitedFor } from '#operator/switch/lock-times.ts'

/** How long it is since `since`, after these looks. */
function waited(since: number, ...looks: readonly (readonly [now: number, isLocked: boolean])[]): number {
  const times = new LockTimes()
  let [now, locks] = [0, times.saw(false, 0)]
  for (const [at, isLocked] of looks) [now, locks] = [at, times.saw(isLocked, at)]
  return waitedFor(since, { now, locks })
}

test.each([
  [100, [[500, false]], 400],
  [100, [[500, true]], 400],
  [
    100,
    [
      [200, true],
      [500, true],
    ],
    100,
  ],
  [
    100,
    [
      [200, true],
      [300, false],
      [500, false],
    ],
    300,
  ],
  [
    250,
    [
      [200, true],
      [300, false],
      [500, false],
    ],
    200,
  ],
  [
    400,
    [
      [200, true],
      [300, false],
      [500, false],
    ],
    100,
  ],
  [
    100,
    [
      [200, true],
      [300, false],
      [400, true],
      [500, false],
    ],
    200,
  ],
] as const)('since %d, after %j, it is %d', (since, looks, expected) => {
  expect(waited(since, ...looks)).toBe(expected)
})

test('of a lock that is found all time before counts for nothing', () => {
  const times = new LockTimes()
  expect(waitedFor(100, { now: 500, locks: times.saw(true, 500) })).toBe(0)
  expect(waitedFor(100, { now: 800, locks: times.saw(false, 600) })).toBe(200)
})

// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { TokenBucket } from '#agent/status/token-bucket.ts'

function taken(bucket: TokenBucket, now: number): number {
  let count = 0
  while (bucket.take(now)) count++
  return count
}

test('so many at once, then so many a second, and never more than at once', () => {
  const bucket = new TokenBucket({ most: 3, perSecond: 2, now: 100 })
  expect([100, 100, 599, 600, 1_100, 60_000].map((now) => taken(bucket, now))).toEqual([3, 0, 0, 1, 1, 3])
})

// SPDX-License-Identifier: Apache-2.0
/** Delays between attempts. Layer: test. */
import { expect, test } from 'vitest'
import { backoffMs } from '#lib/base/backoff.ts'

test('a backoff doubles up to its limit', () => {
  const delays = [0, 1, 2, 3, 4, 100].map((attempt) => backoffMs({ firstMs: 100, maxMs: 1_000 }, attempt))
  expect(delays).toEqual([100, 200, 400, 800, 1_000, 1_000])
})

test('a backoff grows by another factor, and jitter only shortens it', () => {
  expect(backoffMs({ firstMs: 10, maxMs: 1_000, factor: 3 }, 2)).toBe(90)
  expect(backoffMs({ firstMs: 100, maxMs: 1_000 }, 0, 0.5)).toBe(87.5)
  expect(backoffMs({ firstMs: 100, maxMs: 1_000 }, -3)).toBe(100)
})

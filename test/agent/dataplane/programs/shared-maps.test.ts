// SPDX-License-Identifier: Apache-2.0
/** How many rows shared maps have. Layer: test. */
import { expect, test } from 'vitest'
import { lruRoom } from '#agent/dataplane/programs/shared-maps.ts'

test.each([
  [2, 4096],
  [16, 4096],
  [64, 16_384],
  [256, 65_536],
])('an LRU map that asks for 4,096 rows has, on %i CPUs, %i', (cpus, rows) => {
  expect(lruRoom(4096, cpus)).toBe(rows)
})

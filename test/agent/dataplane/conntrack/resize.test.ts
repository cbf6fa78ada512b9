// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { doubled, keptRoom } from '#agent/dataplane/conntrack/resize.ts'

const GIB = 2 ** 30

test.each([
  ['doubles', { room: 1000, configured: 1000, freeBytes: GIB }, 2000],
  ['up to eight times what was asked for', { room: 4000, configured: 1000, freeBytes: GIB }, 8000],
  ['and no further', { room: 8000, configured: 1000, freeBytes: GIB }, undefined],
  ['within a quarter of the memory that is free', { room: 500_000, configured: 500_000, freeBytes: GIB }, 1_000_000],
  ['or not at all', { room: 500_000, configured: 500_000, freeBytes: GIB / 2 }, undefined],
])('the flow table %s', (_, table, expected) => {
  expect(doubled({ ...table, entryBytes: 152 })).toBe(expected)
})

test('a table stays as it has grown, and one of any other size is made as asked for', () => {
  expect([4000, 3000, 500, 16_000, undefined].map((found) => keptRoom(1000, found))).toEqual([4000, 1000, 1000, 1000, 1000])
})

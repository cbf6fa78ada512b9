// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { growingTable, table } from '#lib/base/table.ts'

test('columns are as wide as their widest cell, and lines end with their last letter', () => {
  expect(
    table([
      ['A', 'LONG', 'C'],
      ['wide', 'b'],
      ['', 'b', 'c'],
    ]),
  ).toBe('A     LONG  C\nwide  b\n      b     c')
})

test('a table in parts keeps its columns, which only grow', () => {
  const text = growingTable()
  expect(text([['A', 'B']])).toBe('A  B')
  expect(text([['wide', 'b']])).toBe('wide  b')
  expect(text([['a', 'b']])).toBe('a     b')
})

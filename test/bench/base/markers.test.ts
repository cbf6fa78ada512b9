// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { between } from '../../../bench/base/markers.ts'

const page = 'before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n'

test('what stands between the markers is replaced, again and again', () => {
  const once = between(page, 'bench', 'new\n')
  expect(once).toBe('before\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nafter\n')
  expect(between(once, 'bench', 'new\n')).toBe(once)
})

test('a page without both markers is refused', () => {
  expect(() => between('<!-- bench:end --><!-- bench:begin -->', 'bench', '')).toThrow('bench:begin')
  expect(() => between(page, 'other', '')).toThrow('other')
})

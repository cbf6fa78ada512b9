// SPDX-License-Identifier: Apache-2.0
/** Where a text is cut that is too long. Layer: test. */
import { expect, test } from 'vitest'
import { withoutMiddle } from '#lib/base/text/without-middle.ts'

test.each([
  ['', 9, ''],
  ['123456789', 9, '123456789'],
  ['1234567890', 9, '123…67890'],
  ['12😀4567890', 9, '12\ufffd…67890'],
])('%j has at most %i characters as %j', (text, most, short) => {
  expect(withoutMiddle(text, most)).toBe(short)
})

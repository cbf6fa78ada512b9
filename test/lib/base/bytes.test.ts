// SPDX-License-Identifier: Apache-2.0
/** Byte strings against the platform's. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesToText, textToBytes } from '#lib/base/bytes.ts'

const bytes = fc.uint8Array({ maxLength: 40 })

test('text and back', () => {
  fc.assert(
    fc.property(bytes, (some) => {
      expect(bytesToText(some)).toBe(Buffer.from(some).toString('latin1'))
      expect(textToBytes(bytesToText(some))).toEqual(some)
    }),
  )
})

test('long ones too', () => {
  const some = Uint8Array.from({ length: 10_000 }, (_, at) => at & 255)
  expect(textToBytes(bytesToText(some))).toEqual(some)
})

// SPDX-License-Identifier: Apache-2.0
/** Byte strings against the platform's. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesToHex, bytesToText, compareBytes, textToBytes, writeText } from '#lib/base/bytes.ts'

const bytes = fc.uint8Array({ maxLength: 40 })

test('text and back', () => {
  fc.assert(
    fc.property(bytes, (some) => {
      expect(bytesToText(some)).toBe(Buffer.from(some).toString('latin1'))
      expect(textToBytes(bytesToText(some))).toEqual(some)
      expect(bytesToHex(some)).toBe(Buffer.from(some).toString('hex'))
    }),
  )
})

test('long ones too', () => {
  const some = Uint8Array.from({ length: 10_000 }, (_, at) => at & 255)
  expect(textToBytes(bytesToText(some))).toEqual(some)
})

test('writes in place', () => {
  const target = new Uint8Array(4)
  writeText(target, 1, '\u0001\u00ff')
  expect([...target]).toEqual([0, 1, 255, 0])
})

test('order is memcmp’s', () => {
  fc.assert(
    fc.property(bytes, bytes, (a, b) => {
      expect(compareBytes(a, b)).toBe(Buffer.compare(a, b))
    }),
  )
})

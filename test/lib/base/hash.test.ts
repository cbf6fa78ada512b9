// SPDX-License-Identifier: Apache-2.0
/** Hashes against the platform's and published values. Layer: test. */
import fc from 'fast-check'
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { fnv1a64, sha1, sha256Start } from '#lib/base/hash.ts'

test.each([
  ['', 'cbf29ce484222325'],
  ['a', 'af63dc4c8601ec8c'],
  ['foobar', '85944171f73967e8'],
])('FNV-1a of %j', (text, hash) => {
  expect(fnv1a64(text)).toBe(hash)
})

test('FNV-1a by big numbers gives the same', () => {
  const slow = (text: string): string => {
    let hash = 0xcbf29ce484222325n
    for (const byte of new TextEncoder().encode(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
    return hash.toString(16).padStart(16, '0')
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(fnv1a64(text)).toBe(slow(text))
    }),
  )
})

test('SHA-256 begins as published', () => {
  expect(sha256Start('abc')).toBe('ba7816bf8f01cfea')
  expect(sha256Start('ö')).toBe(createHash('sha256').update('ö').digest('hex').slice(0, 16))
})

test('SHA-1 is the platform’s, at every length around a block', () => {
  const platform = (text: string): string => createHash('sha1').update(text).digest('hex')
  for (let length = 0; length < 200; length++) expect(sha1('x'.repeat(length))).toBe(platform('x'.repeat(length)))
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(sha1(text)).toBe(platform(text))
    }),
  )
})

// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Constraint } from '#lib/base/schema.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { reachable } from '#lib/kube/parse/special-addresses.ts'
import { address } from '#lib/kube/schema/primitives.ts'

/** Undefined: it is taken. */
function refusal(text: string): string | undefined {
  try {
    reachable.read(text)
    return undefined
  } catch (thrown) {
    if (thrown instanceof FieldError) return thrown.reason
    throw thrown
  }
}

/** As an API server sees a text that is an address. */
function holds({ pattern, anyOf, not }: Constraint, text: string): boolean {
  if (pattern !== undefined && !new RegExp(pattern).test(text)) return false
  if (anyOf !== undefined && !anyOf.some((one) => holds(one, text))) return false
  return not === undefined || !holds(not, text)
}

const NONE = 'must not be the unspecified address'
const LOOPBACK = 'must not be a loopback address'
const LINK_LOCAL = 'must not be a link-local address'
const MULTICAST = 'must not be a multicast address'
const BROADCAST = 'must not be the broadcast address'
const NO_HOST = 'must not be an address of 0.0.0.0/8, which no host has'

test.each([
  ['0.0.0.0', NONE],
  ['::', NONE],
  ['0:0::0', NONE],
  ['0000:0:0:0:0:0:0:0', NONE],
  ['127.0.0.1', LOOPBACK],
  ['127.255.255.255', LOOPBACK],
  ['::1', LOOPBACK],
  ['0:0::0001', LOOPBACK],
  ['169.254.0.0', LINK_LOCAL],
  ['fe80::1', LINK_LOCAL],
  ['FEBF:1::', LINK_LOCAL],
  ['224.0.0.255', MULTICAST],
  ['224.0.1.0', MULTICAST],
  ['239.255.255.255', MULTICAST],
  ['ff02::', MULTICAST],
  ['ff01::', MULTICAST],
  ['FFFE::1', MULTICAST],
  ['255.255.255.255', BROADCAST],
  ['0.0.0.1', NO_HOST],
  ['0.255.0.0', NO_HOST],
  ['1.0.0.0', undefined],
  ['223.255.255.255', undefined],
  ['240.0.0.1', undefined],
  ['255.255.255.254', undefined],
  ['10.0.0.0', undefined],
  ['12.7.0.1', undefined],
  ['127::', undefined],
  ['128.0.0.0', undefined],
  ['169.253.255.255', undefined],
  ['::2', undefined],
  ['::10', undefined],
  ['::1:0', undefined],
  ['1::', undefined],
  ['fe7f::', undefined],
  ['fec0::', undefined],
  ['fe8::', undefined],
  ['feff::', undefined],
  ['ff::', undefined],
  ['ff2::', undefined],
])('%s: %s, to the parser and to the schema', (text, reason) => {
  expect(refusal(text)).toBe(reason)
  expect(holds(reachable.schema, text)).toBe(reason === undefined)
})

const group = fc.tuple(
  fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.constantFrom(1, 0x7f, 0xfe80, 0xfebf, 0xff02, 0xffff), fc.nat(0xffff)),
  fc.integer({ min: 1, max: 4 }),
  fc.boolean(),
)
const v6 = fc.tuple(fc.array(group, { minLength: 8, maxLength: 8 }), fc.nat(7), fc.nat(8)).map(([groups, from, count]) => {
  const texts = groups.map(([value, width, upper]) => {
    const text = value.toString(16).padStart(width, '0')
    return upper ? text.toUpperCase() : text
  })
  const left = groups.slice(from, from + count).every(([value]) => value === 0) ? count : 0
  return left === 0 ? texts.join(':') : `${texts.slice(0, from).join(':')}::${texts.slice(from + left).join(':')}`
})
const byte = fc.oneof(fc.constantFrom(0, 1, 127, 169, 224, 254, 255), fc.nat(255))
const v4 = fc.array(byte, { minLength: 4, maxLength: 4 }).map((bytes) => bytes.join('.'))

test('the schema refuses what the parser refuses, however it is written', () => {
  fc.assert(
    fc.property(fc.oneof(v4, v6), (text) => {
      // some are taken for mapped ones by it
      fc.pre(holds(address.schema, text))
      expect([text, holds(reachable.schema, text)]).toEqual([text, refusal(text) === undefined])
    }),
    { numRuns: 5000 },
  )
})

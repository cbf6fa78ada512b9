// SPDX-License-Identifier: Apache-2.0
/** Schemas of addresses and prefixes take what ip.ts takes. Formats, which API servers know, are not looked at here:
 * `test/apiserver/crds.test.ts` asks one. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ADDRESS_SCHEMA, CIDR_SCHEMA, NET_SCHEMA } from '#lib/base/address-schema.ts'
import { tryParseAddr, tryParseCidr } from '#lib/base/ip.ts'
import { ADDRESSES, anyAddress, holds, MAPPED, PREFIXES } from '../../support/address-texts.ts'

test.each(ADDRESSES)('%s is an address, to the parser and to the schemas', (text) => {
  expect(tryParseAddr(text)).toBeDefined()
  expect([ADDRESS_SCHEMA, NET_SCHEMA, CIDR_SCHEMA].map((schema) => holds(schema, text))).toEqual([true, true, false])
})

test.each(PREFIXES)('%s is a prefix, to the parser and to the schemas', (text) => {
  expect(tryParseCidr(text)).toBeDefined()
  expect([ADDRESS_SCHEMA, NET_SCHEMA, CIDR_SCHEMA].map((schema) => holds(schema, text))).toEqual([false, true, true])
})

test.each(MAPPED)('%s is IPv4 inside IPv6, which neither the parser nor a schema takes', (text) => {
  expect([tryParseAddr(text), tryParseCidr(`${text}/128`)]).toEqual([undefined, undefined])
  expect([holds(ADDRESS_SCHEMA, text), holds(NET_SCHEMA, text), holds(CIDR_SCHEMA, `${text}/128`)]).toEqual([false, false, false])
})

test('of any address parser and schemas say the same, however it is written', () => {
  const of = fc.property(anyAddress, fc.nat(130), (text, bits) => {
    const prefix = `${text}/${bits}`
    const [address, cidr] = [tryParseAddr(text) !== undefined, tryParseCidr(prefix) !== undefined]
    expect([text, holds(ADDRESS_SCHEMA, text), holds(NET_SCHEMA, text)]).toEqual([text, address, address])
    expect([prefix, holds(CIDR_SCHEMA, prefix), holds(NET_SCHEMA, prefix)]).toEqual([prefix, cidr, cidr])
  })
  fc.assert(of, { numRuns: 5000 })
})

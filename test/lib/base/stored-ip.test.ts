// SPDX-License-Identifier: Apache-2.0
/** Addresses as API servers store them, read as Go's lenient parsers read them. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr, isV4, tryParseAddr, tryParseCidr } from '#lib/base/ip.ts'
import { tryParseStoredAddr, tryParseStoredCidr } from '#lib/base/stored-ip.ts'
import { NO_ADDRESSES, NO_PREFIXES, OLD_ADDRESSES, OLD_PREFIXES } from '../../support/address-texts.ts'

describe('an address', () => {
  test.each([
    ['10.244.2.11', '10.244.2.11'],
    ['10.244.002.011', '10.244.2.11'],
    ['0000010.0.00.000', '10.0.0.0'],
    ['::ffff:10.244.1.12', '10.244.1.12'],
    ['::ffff:0af4:010c', '10.244.1.12'],
    ['0:0:0:0:0:FFFF:010.244.001.012', '10.244.1.12'],
    ['fd00::1', 'fd00::1'],
    ['fd00:00001::00000b', 'fd00:1::b'],
    ['64:ff9b::192.000.002.001', '64:ff9b::c000:201'],
    ['::010.1.2.3', '::a01:203'],
  ])('%s is %s', (text, wanted) => {
    const addr = tryParseStoredAddr(text)
    expect(addr && formatAddr(addr)).toBe(wanted)
  })

  test.each([
    '',
    '10.0.0',
    '10.0.0.256',
    '10.0.0.0256',
    '1e.0.0.1',
    '0x10.0.0.1',
    ' 10.0.0.1',
    '10.0.0.1/32',
    'fd00::10000',
    'fe80::1%eth0',
    '::ffff:10.0.0',
  ])('%j is none', (text) => {
    expect(tryParseStoredAddr(text)).toBeUndefined()
  })
})

describe('a prefix', () => {
  test.each([
    ['10.244.001.0/24', '10.244.1.0/24'],
    ['10.244.1.77/024', '10.244.1.0/24'],
    ['010.0.0.0/8', '10.0.0.0/8'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::ffff:10.244.1.77/120', '10.244.1.0/24'],
    ['::ffff:10.244.1.77/128', '10.244.1.77/32'],
    ['::ffff:0.0.0.0/96', '0.0.0.0/0'],
    ['::ffff:10.0.0.0/95', '::fffe:0:0/95'],
    ['::ffff:10.0.0.0/0', '::/0'],
    ['fd00:0001::/032', 'fd00:1::/32'],
  ])('%s is %s', (text, wanted) => {
    const cidr = tryParseStoredCidr(text)
    expect(cidr && formatCidr(cidr)).toBe(wanted)
    expect(cidr && isV4(cidr.addr)).toBe(!wanted.includes(':'))
  })

  test.each([
    '10.0.0.0',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '/8',
    '10.0.0/8',
    'fd00::/129',
    '::ffff:10.0.0.0/129',
    '10.0.0.0/8/8',
    '10.0.0.0/8 ',
  ])('%j is none', (text) => {
    expect(tryParseStoredCidr(text)).toBeUndefined()
  })
})

test('what has an old form is read here, and not where it is written now', () => {
  expect(OLD_ADDRESSES.filter((text) => tryParseStoredAddr(text) === undefined || tryParseAddr(text) !== undefined)).toEqual([])
  expect(OLD_PREFIXES.filter((text) => tryParseStoredCidr(text) === undefined || tryParseCidr(text) !== undefined)).toEqual([])
  expect(NO_ADDRESSES.filter((text) => tryParseStoredAddr(text) !== undefined)).toEqual([])
  expect(NO_PREFIXES.filter((text) => tryParseStoredCidr(text) !== undefined)).toEqual([])
})

test('zeros in front of a number change nothing', () => {
  const zeros = fc.array(fc.nat(3), { minLength: 8, maxLength: 8 })
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), zeros, fc.nat(32), (text, counts, bits) => {
      let at = 0
      const written = text.replaceAll(/[0-9a-fA-F]+/g, (number) => '0'.repeat(counts[at++ % 8] ?? 0) + number)
      const strict = tryParseAddr(text)
      if (strict !== undefined) expect(tryParseStoredAddr(written)).toBe(strict)
      const cidr = tryParseCidr(`${text}/${bits}`)
      if (cidr !== undefined) expect(tryParseStoredCidr(`${written}/0${bits}`)).toEqual(cidr)
    }),
  )
})

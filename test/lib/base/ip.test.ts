// SPDX-License-Identifier: Apache-2.0
/** Addresses, prefixes and ports: tables and round trips. Layer: test. */
import fc from 'fast-check'
import { isIP } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  addrBits,
  addrBytes,
  addrFromBytes,
  addrFromText,
  ANY_V4,
  ANY_V6,
  cidrContains,
  formatAddr,
  formatCidr,
  isAny,
  isV4,
  maskAddr,
  parseAddr,
  parseCidr,
  parsePort,
  protocolNumber,
  tryParseAddr,
  tryParseCidr,
} from '#lib/base/ip.ts'

const bytes16 = fc.uint8Array({ minLength: 16, maxLength: 16 })
const sparse16 = fc
  .array(fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 255 })), { minLength: 16, maxLength: 16 })
  .map((bytes) => Uint8Array.from(bytes))

describe('addresses', () => {
  test.each([
    ['10.0.0.1', '10.0.0.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['FD00::00AB', 'fd00::ab'],
    ['fe80:0:0:1:0:0:0:1', 'fe80:0:0:1::1'],
    ['1:0:0:2:0:0:3:4', '1::2:0:0:3:4'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['1:2:3:0:5:6:7:8', '1:2:3:0:5:6:7:8'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ])('%s is printed as %s', (text, printed) => {
    expect(formatAddr(parseAddr(text))).toBe(printed)
  })

  test.each([
    '',
    '1',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.256',
    '1..2.3',
    ' 1.2.3.4',
    '1.2.3.4 ',
    '-1.2.3.4',
    ':',
    ':1',
    '1:',
    ':::',
    '1:::2',
    '1::2::3',
    '12345::',
    'g::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2:3:4:5:6:7:8',
    'fe80::1%eth0',
    '::ffff:1.2.3.4',
    '::ffff:102:304',
    '::1.2.3',
    '1.2.3.4::',
  ])('%j is no address', (text) => {
    expect(tryParseAddr(text)).toBeUndefined()
    expect(() => parseAddr(text)).toThrow('not an IP address')
  })

  test('are 16 bytes, IPv4 mapped', () => {
    expect([...addrBytes(parseAddr('1.2.3.4'))]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 1, 2, 3, 4])
    expect([...addrBytes(ANY_V4)]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0])
    expect(addrFromBytes(Uint8Array.of(1, 2, 3, 4))).toBe(parseAddr('1.2.3.4'))
    expect(() => addrFromBytes(new Uint8Array(5))).toThrow('16-byte address')
    expect(() => addrFromText('\u0100'.repeat(16))).toThrow('16-byte address')
  })

  test('know their family and its any-address', () => {
    expect([isV4(ANY_V4), isV4(ANY_V6), addrBits(ANY_V4), addrBits(ANY_V6)]).toEqual([true, false, 32, 128])
    expect([isAny(ANY_V4), isAny(ANY_V6), isAny(parseAddr('::1'))]).toEqual([true, true, false])
  })

  test('round trip: bytes → text → bytes', () => {
    fc.assert(
      fc.property(fc.oneof(bytes16, sparse16), (bytes) => {
        const addr = addrFromBytes(bytes)
        expect(isIP(formatAddr(addr))).toBe(isV4(addr) ? 4 : 6)
        expect(parseAddr(formatAddr(addr))).toBe(addr)
        expect(addrBytes(addr)).toEqual(bytes)
      }),
    )
  })

  test('IPv4 texts come back as they were', () => {
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        expect(formatAddr(parseAddr(text))).toBe(text)
      }),
    )
  })

  test('what is taken is taken by the platform too, and the other way round', () => {
    const nearly = fc.oneof(
      fc.ipV6(),
      fc.ipV4(),
      fc.string({ unit: fc.constantFrom(...'0123456789abcdef:.%'.split(/(?:)/u)), maxLength: 24 }),
    )
    fc.assert(
      fc.property(nearly, (text) => {
        const mapped = /^[0:]*:ffff:/i.test(text) && isIP(text) === 6
        if (mapped || text.includes('%')) return
        expect(tryParseAddr(text) !== undefined).toBe(isIP(text) !== 0)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('prefixes', () => {
  test.each([
    ['10.1.2.3/12', '10.0.0.0/12'],
    ['10.1.2.3/32', '10.1.2.3/32'],
    ['1.2.3.4/0', '0.0.0.0/0'],
    ['fd00:1:2:3::5/47', 'fd00:1:2::/47'],
    ['fd00::5/128', 'fd00::5/128'],
    ['::/0', '::/0'],
  ])('%s is %s', (text, printed) => {
    expect(formatCidr(parseCidr(text))).toBe(printed)
  })

  test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/08', '10.0.0.0/', 'fd00::/129', '/8', '10.0.0/8'])(
    '%j is none',
    (text) => {
      expect(tryParseCidr(text)).toBeUndefined()
      expect(() => parseCidr(text)).toThrow('not an IP prefix')
    },
  )

  test('contain what shares their first bits, in their own family', () => {
    fc.assert(
      fc.property(bytes16, fc.boolean(), fc.nat(128), (bytes, v4, wanted) => {
        const addr = addrFromBytes(v4 ? bytes.subarray(0, 4) : bytes)
        const bits = Math.min(wanted, addrBits(addr))
        const cidr = { addr: maskAddr(addr, bits), bits }
        expect(cidrContains(cidr, addr)).toBe(true)
        expect(cidrContains(cidr, isV4(addr) ? parseAddr('1::1') : ANY_V4)).toBe(false)
        expect(parseCidr(formatCidr(cidr))).toEqual(cidr)
      }),
    )
  })
})

test('ports are 1 .. 65535', () => {
  expect([parsePort(1), parsePort('65535')]).toEqual([1, 65535])
  for (const wrong of [0, 65536, 1.5, Number.NaN, '', '0', '80a', '-1']) expect(() => parsePort(wrong)).toThrow('must be 1..65535')
})

test('protocols have their numbers', () => {
  expect([protocolNumber('TCP'), protocolNumber('UDP'), protocolNumber('SCTP')]).toEqual([6, 17, 132])
})

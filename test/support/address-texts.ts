// SPDX-License-Identifier: Apache-2.0
/** Addresses as people write them: those that mean something of their own, those that look like others, those that are
 * none; and any. Layer: test. */
import fc from 'fast-check'
import type { Constraint } from '#lib/base/schema.ts'

/** Addresses, of which some are refused where an endpoint is meant. */
export const ADDRESSES: readonly string[] = [
  ...['10.0.0.1', '0.0.0.0', '0.0.0.1', '127.0.0.1', '169.254.0.1', '224.0.0.1', '224.0.1.1', '240.0.0.1', '255.255.255.255'],
  ...['::', '0:0::0', '0000:0:0:0:0:0:0:0', '::0.0.0.0', '::1', '0:0::0001', '::0.0.0.1', '::2', '::1.2.3.4', '100::'],
  ...['64:ff9b::192.0.2.1', '2001:db8::1', '2002:c000:201::', 'fd00::1', 'fe80::1', 'FEBF:1::', 'ff02::1', 'ff0e::1'],
  // ffff in other places than that of IPv4 inside IPv6
  ...['::ffff', '::ffff:5', '::ffff:0:0:0', '0:0:0:0:ffff:0:0:0', '0:0:0:0:ffff::', 'ffff::', '0:0:0:0:0:0:ffff:1', '::ffff:0:1.2.3.4'],
  // the longest
  'abcd:abcd:abcd:abcd:abcd:abcd:255.255.255.255',
]

/** IPv4 inside IPv6. */
export const MAPPED: readonly string[] = [
  ...['::ffff:1.2.3.4', '::FFFF:102:304', '0::0:ffff:0:0', '0:0:0:0:0:ffff:102:304', '0:0:0:0:0:ffff:1.2.3.4'],
  ...['0:0:0:0:0:ffff::', '0:0:0:0:0:ffff::5', '0:0:0:0:0:ffff:5::'],
]

/** Read where they are stored, and taken nowhere where they are written now. */
export const OLD_ADDRESSES: readonly string[] = [...MAPPED, '010.0.0.1', '::01.2.3.4']

/** No addresses, though some programs take them for one. */
export const NO_ADDRESSES: readonly string[] = [
  ...['1.2.3', '256.0.0.1', '1.2.3.4.5', 'fe80::1%eth0', ':::', '1::2::3', '::1.2.3', '1.2.3.4::'],
  ...['1:2:3:4:5:6:7:1.2.3.4', '0:0:0:0:0:0:0:0:0', '::12345', ' ::1', '::1 ', '[::1]'],
]

const ANY_LENGTH = ['0.0.0.0/0', '10.0.0.1/8', '::/0', '::/96', 'fd00::1/64', '64:ff9b::0.0.0.0/96', '0:0:0:0:ffff:0:0:0/80']
const OLD_LENGTH = ['10.0.0.0/08', '::ffff:0:0/96']
const NO_LENGTH = ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', '/8', '::/129']

export const PREFIXES: readonly string[] = [...ADDRESSES.map(whole), ...ANY_LENGTH]
export const OLD_PREFIXES: readonly string[] = [...OLD_ADDRESSES.map(whole), ...OLD_LENGTH]
export const NO_PREFIXES: readonly string[] = [...NO_ADDRESSES.map(whole), ...NO_LENGTH]

function whole(address: string): string {
  return `${address}/${address.includes(':') ? 128 : 32}`
}

const group = fc
  .tuple(
    fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.constantFrom(1, 0x7f, 0xfe80, 0xfebf, 0xff02, 0xffff), fc.nat(0xffff)),
    fc.integer({ min: 1, max: 4 }),
    fc.boolean(),
  )
  .map(([value, width, upper]) => {
    const text = value.toString(16).padStart(width, '0')
    return { value, text: upper ? text.toUpperCase() : text }
  })
const byte = fc.oneof(fc.constantFrom(0, 1, 127, 169, 224, 254, 255), fc.nat(255))
const v4 = fc.array(byte, { minLength: 4, maxLength: 4 }).map((bytes) => bytes.join('.'))
const v6 = fc
  .tuple(fc.array(group, { minLength: 8, maxLength: 8 }), fc.nat(7), fc.nat(8), fc.option(v4))
  .map(([groups, from, count, quad]) => {
    const texts = quad === null ? groups.map(({ text }) => text) : [...groups.slice(0, 6).map(({ text }) => text), quad]
    // groups of zero in a row may be left out
    const end = Math.min(from + count, quad === null ? 8 : 6)
    const isLeftOut = end > from && groups.slice(from, end).every(({ value }) => value === 0)
    return isLeftOut ? `${texts.slice(0, from).join(':')}::${texts.slice(end).join(':')}` : texts.join(':')
  })

/** Any address of either family, IPv4 inside IPv6 as well, however it is written. */
export const anyAddress: fc.Arbitrary<string> = fc.oneof(v4, v6)

/** As an API server sees a text; what formats say is not looked at. */
export function holds({ pattern, maxLength = Infinity, anyOf, not }: Constraint, text: string): boolean {
  if (text.length > maxLength) return false
  if (pattern !== undefined && !new RegExp(pattern).test(text)) return false
  if (anyOf !== undefined && !anyOf.some((one) => holds(one, text))) return false
  return not === undefined || !holds(not, text)
}

// SPDX-License-Identifier: Apache-2.0
/** Addresses that no service and no endpoint may have: those that the API itself refuses, and all others that are no
 * host's (docs/security.md). Layer: lib/kube. */
import { cidrContains, parseCidr } from '../../base/ip.ts'
import type { Addr, Cidr } from '../../base/ip.ts'
import { addressSchemaWithout } from '../../base/address-schema.ts'
import type { Shape } from '../schema/shape.ts'
import { asAddr, FieldError } from './fields.ts'

interface Special {
  readonly cidr: Cidr
  readonly what: string
  /** of every way to write one of them */
  readonly pattern: string
}

/** An endpoint at a loopback address would open the node's own services to all clients. */
const special: readonly Special[] = [
  { cidr: parseCidr('0.0.0.0/32'), what: 'the unspecified address', pattern: '0\\.0\\.0\\.0' },
  { cidr: parseCidr('0.0.0.0/8'), what: 'an address of 0.0.0.0/8, which no host has', pattern: '0\\..*' },
  { cidr: parseCidr('::/128'), what: 'the unspecified address', pattern: '[0:]+(0\\.0\\.0\\.0)?' },
  { cidr: parseCidr('127.0.0.0/8'), what: 'a loopback address', pattern: '127\\..*' },
  { cidr: parseCidr('::1/128'), what: 'a loopback address', pattern: '[0:]*:(0{0,3}1|0\\.0\\.0\\.1)' },
  { cidr: parseCidr('169.254.0.0/16'), what: 'a link-local address', pattern: '169\\.254\\..*' },
  { cidr: parseCidr('fe80::/10'), what: 'a link-local address', pattern: '[fF][eE][89abAB][0-9a-fA-F]:.*' },
  { cidr: parseCidr('224.0.0.0/4'), what: 'a multicast address', pattern: '(22[4-9]|23[0-9])\\..*' },
  { cidr: parseCidr('ff00::/8'), what: 'a multicast address', pattern: '[fF]{2}[0-9a-fA-F]{2}:.*' },
  { cidr: parseCidr('255.255.255.255/32'), what: 'the broadcast address', pattern: '255\\.255\\.255\\.255' },
]

/** First bytes of the ranges above: nearly every address is done with one look. */
const firstBytes = new Set(special.flatMap(({ cidr }) => firstBytesOf(cidr)))

export function asReachable(value: unknown): Addr {
  const addr = asAddr(value)
  const what = specialOf(addr)
  if (what !== undefined) throw new FieldError('', `must not be ${what}`, true)
  return addr
}

export function isReachable(addr: Addr): boolean {
  return specialOf(addr) === undefined
}

/** undefined: it is none of them. */
function specialOf(addr: Addr): string | undefined {
  if (!firstBytes.has(firstByte(addr))) return undefined
  return special.find(({ cidr }) => cidrContains(cidr, addr))?.what
}

/** An address that is none of them. */
export const reachable: Shape<Addr> = {
  read: asReachable,
  schema: addressSchemaWithout(special.map(({ pattern }) => pattern)),
}

/** A range shorter than a byte has several. */
function firstBytesOf({ addr, bits }: Cidr): readonly number[] {
  return Array.from({ length: 1 << Math.max(0, 8 - bits) }, (_, at) => firstByte(addr) + at)
}

/** Of the family's own bytes, IPv6 apart from IPv4. */
function firstByte(addr: Addr): number {
  const v4 = addr.charCodeAt(10) === 255 && addr.startsWith('\0\0\0\0\0\0\0\0\0\0\xff\xff')
  return v4 ? addr.charCodeAt(12) : 256 + addr.charCodeAt(0)
}

// SPDX-License-Identifier: Apache-2.0
/** Addresses that no service and no endpoint may have, as in the API's own rules. Layer: lib/kube. */
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
  { cidr: parseCidr('::/128'), what: 'the unspecified address', pattern: '[0:]+(0\\.0\\.0\\.0)?' },
  { cidr: parseCidr('127.0.0.0/8'), what: 'a loopback address', pattern: '127\\..*' },
  { cidr: parseCidr('::1/128'), what: 'a loopback address', pattern: '[0:]*:(0{0,3}1|0\\.0\\.0\\.1)' },
  { cidr: parseCidr('169.254.0.0/16'), what: 'a link-local address', pattern: '169\\.254\\..*' },
  { cidr: parseCidr('fe80::/10'), what: 'a link-local address', pattern: '[fF][eE][89abAB][0-9a-fA-F]:.*' },
  { cidr: parseCidr('224.0.0.0/24'), what: 'a link-local multicast address', pattern: '224\\.0\\.0\\..*' },
  { cidr: parseCidr('ff02::/16'), what: 'a link-local multicast address', pattern: '[fF]{2}02:.*' },
]

/** First bytes of the ranges above: nearly every address is done with one look. */
const firstBytes = new Set(special.map(({ cidr }) => firstByte(cidr.addr)))

export function asReachable(value: unknown): Addr {
  const addr = asAddr(value)
  const what = specialOf(addr)
  if (what !== undefined) throw new FieldError('', `must not be ${what}`)
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

/** Of the family's own bytes, IPv6 apart from IPv4. */
function firstByte(addr: Addr): number {
  const v4 = addr.charCodeAt(10) === 255 && addr.startsWith('\0\0\0\0\0\0\0\0\0\0\xff\xff')
  return v4 ? addr.charCodeAt(12) : 256 + addr.charCodeAt(0)
}

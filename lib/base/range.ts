// SPDX-License-Identifier: Apache-2.0
/** Addresses by their number in a prefix, and the other way round. Layer: lib/base. */
import { addrBits, addrBytes, addrFromBytes, cidrContains, isV4 } from './ip.ts'
import type { Addr, Cidr } from './ip.ts'

/** Of a larger range only the first addresses are given away: no node has so many pods. */
const MOST_ADDRESSES = 1 << 16

/** How many addresses of the range can be given away. */
export function rangeSize({ addr, bits }: Cidr): number {
  return Math.min(2 ** (addrBits(addr) - bits), MOST_ADDRESSES)
}

export function addrAt(range: Cidr, index: number): Addr {
  return toAddr(toNumber(range.addr) + BigInt(index), isV4(range.addr))
}

/** undefined: it is not one of those that can be given away */
export function indexOf(range: Cidr, addr: Addr): number | undefined {
  if (!cidrContains(range, addr)) return undefined
  const index = Number(toNumber(addr) - toNumber(range.addr))
  return index < rangeSize(range) ? index : undefined
}

/** Whether hosts may take the address for that of a network: in IPv4 the first and last of the range and of each /24
 * (network, broadcast), in IPv6 the first of the range and of each /64 (subnet-router anycast, RFC 4291, 2.6.1). A
 * range of two addresses has none (RFC 3021, 6164). */
export function isNetworkAddress(addr: Addr, range: Cidr): boolean {
  const v4 = isV4(addr)
  const free = addrBits(addr) - range.bits
  if (free < 2) return false
  const number = toNumber(addr)
  return [free, v4 ? 8 : 64].some((bits) => {
    const host = number & ((1n << BigInt(bits)) - 1n)
    return host === 0n || (v4 && host === (1n << BigInt(bits)) - 1n)
  })
}

/** How many blocks of this prefix length the range has. */
export function blockCount(range: Cidr, blockBits: number): number {
  return 2 ** (blockBits - range.bits)
}

export function blockAt(range: Cidr, { bits, number }: { readonly bits: number; readonly number: number }): Cidr {
  const size = 1n << BigInt(addrBits(range.addr) - bits)
  return { addr: toAddr(toNumber(range.addr) + BigInt(number) * size, isV4(range.addr)), bits }
}

export function overlaps(a: Cidr, b: Cidr): boolean {
  return a.bits <= b.bits ? cidrContains(a, b.addr) : cidrContains(b, a.addr)
}

function toNumber(addr: Addr): bigint {
  return addrBytes(addr).reduce((number, byte) => (number << 8n) | BigInt(byte), 0n)
}

function toAddr(number: bigint, v4: boolean): Addr {
  const bytes = Uint8Array.from({ length: 16 }, (_, at) => Number((number >> BigInt(8 * (15 - at))) & 0xffn))
  return addrFromBytes(v4 ? bytes.subarray(12) : bytes)
}

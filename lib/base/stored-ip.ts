// SPDX-License-Identifier: Apache-2.0
/** Addresses and prefixes as API servers store them: in all forms that Kubernetes' lenient parsers take
 * (ParseIPSloppy and ParseCIDRSloppy of k8s.io/utils/net). Layer: lib/base. */
import { addrBits, maskAddr, maskBytes, parseAddr, tryParseAddr, tryParseCidr, unmapped } from './ip.ts'
import type { Addr, Cidr } from './ip.ts'

/** Leading zeros mean nothing, so that 010 is ten; an IPv4 address inside IPv6 is that IPv4 address. */
export function tryParseStoredAddr(text: string): Addr | undefined {
  return tryParseAddr(text) ?? tryParseAddr(unmapped(withoutZeros(text)))
}

/** The same of a prefix. One inside IPv6 is of IPv4 as far as it tells IPv4 addresses apart: ::ffff:10.0.0.0/104 is
 * 10.0.0.0/8. With a length below 96 it is a prefix of IPv6. Host bits are cut off. */
export function tryParseStoredCidr(text: string): Cidr | undefined {
  const strict = tryParseCidr(text)
  if (strict !== undefined) return strict
  const slash = text.indexOf('/')
  const bitsText = text.slice(slash + 1)
  if (slash < 0 || !/^\d+$/.test(bitsText)) return undefined
  const bits = Number(bitsText)
  const written = withoutZeros(text.slice(0, slash))
  const inner = unmapped(written)
  if (inner !== written) return bits > 128 ? undefined : mappedCidr(parseAddr(inner), bits)
  const addr = tryParseAddr(written)
  return addr === undefined || bits > addrBits(addr) ? undefined : { addr: maskAddr(addr, bits), bits }
}

/** `bits` of 128. */
function mappedCidr(addr: Addr, bits: number): Cidr {
  return bits < 96 ? { addr: maskBytes(addr, bits), bits } : { addr: maskAddr(addr, bits - 96), bits: bits - 96 }
}

/** Of each decimal or hexadecimal number. */
function withoutZeros(text: string): string {
  return text.replaceAll(/(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])/g, '')
}

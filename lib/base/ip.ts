// SPDX-License-Identifier: Apache-2.0
/** Addresses of both families in one form: 16 latin1 chars, one a byte, IPv4 as ::ffff:a.b.c.d. Layer: lib/base. */
import type { Branded } from './brand.ts'
import { bytesToText, textToBytes } from './bytes.ts'
import { ParseError } from './errors.ts'

/** Exactly 16 chars, each one byte: compact, immutable, comparable with `===`, a Map key. Sorts IPv4 before global
 * IPv6. */
export type Addr = Branded<string, 'addr'>

/** 1 .. 65535 */
export type Port = Branded<number, 'port'>

export type Protocol = 'TCP' | 'UDP' | 'SCTP'

/** `bits` in the family's own count: 0 .. 32 or 0 .. 128. Bits of `addr` after the prefix are zero. */
export interface Cidr {
  readonly addr: Addr
  readonly bits: number
}

const PROTOCOL_TEXTS: ReadonlyMap<number, string> = new Map([
  [1, 'ICMP'],
  [6, 'TCP'],
  [17, 'UDP'],
  [58, 'ICMPv6'],
  [132, 'SCTP'],
])

const V4_PREFIX = '\0\0\0\0\0\0\0\0\0\0\xff\xff'
/** Of an address's bytes. */
const PLACES = Array.from({ length: 16 }, (_, at) => at)

/** ::ffff:0.0.0.0 */
export const ANY_V4: Addr = addrFromText(V4_PREFIX + '\0\0\0\0')
/** :: */
export const ANY_V6: Addr = addrFromText('\0'.repeat(16))

/** Dotted quad (no leading zeros) or RFC 4291 text without zone. The mapped form ::ffff:1.2.3.4 is refused: it would
 * be a second name of an IPv4 address. */
export function tryParseAddr(text: string): Addr | undefined {
  return text.includes(':') ? parseV6(text) : parseV4(text)
}

/** "1.2.3.4" for "::ffff:1.2.3.4" or "::ffff:102:304", to which sockets connect by IPv4; anything else as it is. */
export function unmapped(text: string): string {
  const addr = text.includes(':') ? readV6(text) : undefined
  return addr !== undefined && isV4(addr) ? formatAddr(addr) : text
}

/** As {@link tryParseAddr}; throws ParseError. */
export function parseAddr(text: string): Addr {
  const addr = tryParseAddr(text)
  if (addr === undefined) throw new ParseError('IP address', text)
  return addr
}

/** "10.0.0.0/8"; host bits are cut off; undefined when it is no prefix. */
export function tryParseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return undefined
  const addr = tryParseAddr(text.slice(0, slash))
  const bitsText = text.slice(slash + 1)
  if (addr === undefined || !/^(0|[1-9]\d{0,2})$/.test(bitsText)) return undefined
  const bits = Number(bitsText)
  return bits > addrBits(addr) ? undefined : { addr: maskAddr(addr, bits), bits }
}

/** As {@link tryParseCidr}; throws ParseError. */
export function parseCidr(text: string): Cidr {
  const cidr = tryParseCidr(text)
  if (cidr === undefined) throw new ParseError('IP prefix', text)
  return cidr
}

export function isPort(value: number): value is Port {
  return Number.isInteger(value) && value >= 1 && value <= 65535
}

/** From a number or decimal text; throws ParseError outside 1 .. 65535. */
export function parsePort(value: number | string): Port {
  const port = typeof value === 'number' ? value : /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN
  if (!isPort(port)) throw new ParseError('port', String(value), 'must be 1..65535')
  return port
}

/** The number in the IP header. */
export function protocolNumber(protocol: Protocol): number {
  switch (protocol) {
    case 'TCP':
      return 6
    case 'UDP':
      return 17
    case 'SCTP':
      return 132
  }
}

/** "TCP", "ICMPv6"; the number where we have no name for it. */
export function protocolText(number: number): string {
  return PROTOCOL_TEXTS.get(number) ?? String(number)
}

export function isV4(addr: Addr): boolean {
  return addr.startsWith(V4_PREFIX)
}

/** 32 or 128 */
export function addrBits(addr: Addr): number {
  return isV4(addr) ? 32 : 128
}

export function isAny(addr: Addr): boolean {
  return addr === ANY_V4 || addr === ANY_V6
}

/** Dotted quad, or RFC 5952: lower case, the longest run of zeros (first of equals, at least two) as "::". */
export function formatAddr(addr: Addr): string {
  if (isV4(addr)) return `${addr.charCodeAt(12)}.${addr.charCodeAt(13)}.${addr.charCodeAt(14)}.${addr.charCodeAt(15)}`
  const groups = Array.from({ length: 8 }, (_, at) => addr.charCodeAt(2 * at) * 256 + addr.charCodeAt(2 * at + 1))
  const run = longestZeroRun(groups)
  const hex = (from: number, to: number): string =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(':')
  return run.length < 2 ? hex(0, 8) : `${hex(0, run.start)}::${hex(run.start + run.length, 8)}`
}

export function formatCidr(cidr: Cidr): string {
  return `${formatAddr(cidr.addr)}/${cidr.bits}`
}

/** "10.0.0.1:80", "[fd00::1]:80" */
export function hostPort(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** False for the other family. */
export function cidrContains(cidr: Cidr, addr: Addr): boolean {
  return isV4(cidr.addr) === isV4(addr) && maskAddr(addr, cidr.bits) === cidr.addr
}

/** True when one of the prefixes contains it. */
export function isWithin(cidrs: readonly Cidr[], addr: Addr): boolean {
  return cidrs.some((cidr) => cidrContains(cidr, addr))
}

/** `addr` with everything after the first `bits` (the family's own count) zero. */
export function maskAddr(addr: Addr, bits: number): Addr {
  return maskBytes(addr, isV4(addr) ? bits + 96 : bits)
}

/** The same, counted over all 16 bytes. */
export function maskBytes(addr: Addr, keep: number): Addr {
  if (isZeroAfter(addr, keep)) return addr
  const text = String.fromCharCode(...PLACES.map((at) => addr.charCodeAt(at) & (0xff00 >> Math.min(8, Math.max(0, keep - 8 * at)))))
  return isSixteen(text) ? text : addr
}

/** Are all of its 16 bytes' bits zero but the first so many? */
function isZeroAfter(addr: Addr, bits: number): boolean {
  const whole = bits >> 3
  if (whole < 16 && (addr.charCodeAt(whole) & (0xff >> (bits & 7))) !== 0) return false
  for (let at = whole + 1; at < 16; at++) if (addr.charCodeAt(at) !== 0) return false
  return true
}

/** How many of an address's 16 bytes' bits the prefix fixes: 96 and its own of IPv4. */
export function depthOf({ addr, bits }: Cidr): number {
  return isV4(addr) ? bits + 96 : bits
}

/** One for all addresses with these first bits of 16 bytes. */
export function prefixKey(addr: Addr, bits: number): string {
  const whole = bits >> 3
  const rest = (bits & 7) === 0 ? '' : String.fromCharCode(addr.charCodeAt(whole) & (0xff00 >> (bits & 7)))
  return `${addr.slice(0, whole)}${rest}/${bits}`
}

/** 16 bytes, v4 mapped. */
export function addrBytes(addr: Addr): Uint8Array {
  return textToBytes(addr)
}

/** From exactly 16 bytes, or 4 of an IPv4 address; throws ParseError on another length. */
export function addrFromBytes(bytes: Uint8Array): Addr {
  const text = bytes.length === 4 ? V4_PREFIX + bytesToText(bytes) : bytesToText(bytes)
  if (!isSixteen(text)) throw new ParseError('16-byte address', text)
  return text
}

/** From 16 latin1 chars as they come out of a codec; throws ParseError on anything else. */
export function addrFromText(text: string): Addr {
  if (!isAddrText(text)) throw new ParseError('16-byte address', text)
  return text
}

function isAddrText(text: string): text is Addr {
  return text.length === 16 && /^[\0-\xff]*$/.test(text)
}

/** For bytes made in this file: the length alone is checked. */
function isSixteen(text: string): text is Addr {
  return text.length === 16
}

/** Written without regular expressions: a cold start parses hundreds of thousands of these. */
function parseV4(text: string): Addr | undefined {
  let octets = 0
  /** those so far, as one number */
  let before = 0
  let value = -1
  for (let at = 0; at <= text.length; at++) {
    const char = at < text.length ? text.charCodeAt(at) : 46
    if (char === 46) {
      if (value < 0 || octets === 4) return undefined
      before = before * 256 + value
      octets++
      value = -1
    } else if (char >= 48 && char <= 57 && value !== 0) {
      value = value < 0 ? char - 48 : value * 10 + char - 48
      if (value > 255) return undefined
    } else return undefined
  }
  if (octets !== 4) return undefined
  const [a, b, c, d] = [before >>> 24, (before >> 16) & 255, (before >> 8) & 255, before & 255]
  // one call with all chars: a concatenation would keep a tree of strings alive
  const bytes = String.fromCharCode(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, a, b, c, d)
  return isSixteen(bytes) ? bytes : undefined
}

function parseV6(text: string): Addr | undefined {
  const addr = readV6(text)
  return addr !== undefined && !isV4(addr) ? addr : undefined
}

/** The mapped form as well. */
function readV6(text: string): Addr | undefined {
  const halves = text.split('::')
  const [head, tail] = halves
  if (halves.length > 2 || head === undefined) return undefined
  const left = groupsOf(head, tail === undefined)
  const right = tail === undefined ? [] : groupsOf(tail, true)
  if (left === undefined || right === undefined) return undefined
  const missing = 8 - left.length - right.length
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = [...left, ...Array<number>(missing).fill(0), ...right]
  const bytes = String.fromCharCode(...PLACES.map((at) => ((groups[at >> 1] ?? 0) >> (at % 2 === 0 ? 8 : 0)) & 255))
  return isSixteen(bytes) ? bytes : undefined
}

/** 16-bit groups between colons; the last may be a dotted quad where `quad` allows it. */
function groupsOf(text: string, quad: boolean): number[] | undefined {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [at, part] of parts.entries()) {
    const group = groupOf(part)
    if (group !== undefined) groups.push(group)
    else {
      const v4 = quad && at === parts.length - 1 ? parseV4(part) : undefined
      if (v4 === undefined) return undefined
      groups.push(v4.charCodeAt(12) * 256 + v4.charCodeAt(13), v4.charCodeAt(14) * 256 + v4.charCodeAt(15))
    }
  }
  return groups
}

/** Of one to four hexadecimal digits. */
function groupOf(part: string): number | undefined {
  if (part.length === 0 || part.length > 4) return undefined
  let group = 0
  for (let at = 0; at < part.length; at++) {
    const char = part.charCodeAt(at)
    if (char >= 48 && char <= 57) group = group * 16 + char - 48
    else if ((char | 32) >= 97 && (char | 32) <= 102) group = group * 16 + (char | 32) - 87
    else return undefined
  }
  return group
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  let start = 0
  for (let at = 0; at <= groups.length; at++) {
    if (groups[at] === 0) continue
    if (at - start > best.length) best = { start, length: at - start }
    start = at + 1
  }
  return best
}

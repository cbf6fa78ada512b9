// SPDX-License-Identifier: Apache-2.0
/** What the kernel that receives a frame sees in it: by RFC 791, 792, 2460, 4443, 8200 and IEEE 802.1Q, not by our
 * programs. Layer: test. */
import { addrFromBytes } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { ICMP, ICMPV6, SCTP, TCP, UDP } from '#lib/policy/packet.ts'
import { checksum, concat } from '../../../testkit/packets/packet.ts'

/** What rules ask about, without the addresses. An echo's id stands in both ports. */
export interface Reading {
  readonly protocol: number
  readonly sport: number
  readonly dport: number
  readonly icmp: { readonly type: number; readonly code: number } | undefined
}

export type Inside =
  /** undefined: the transport header is cut off, so the receiver drops it */
  | { readonly kind: 'whole'; readonly reading: Reading | undefined; readonly l4: Uint8Array }
  /** a datagram's first fragment; `ends`: where its headers end, counted as offsets of fragments are. Undefined: not
   * all are in it */
  | { readonly kind: 'first'; readonly key: string; readonly reading: Reading | undefined; readonly ends: number; readonly l4: Uint8Array }
  | { readonly kind: 'later'; readonly key: string; readonly offset: number }

export interface IpSeen {
  readonly kind: 'ip'
  readonly v4: boolean
  readonly src: Addr
  readonly dst: Addr
  readonly hop: number
  /** IPv6: an address that would be an IPv4 one */
  readonly mapped: boolean
  /** its receiver drops it; programs may take it for what it would have been */
  readonly broken: boolean
  readonly inside: Inside
}

export type Seen =
  | IpSeen
  | { readonly kind: 'arp'; readonly operation: number; readonly sender: Addr }
  /** of another network than the device's own */
  | { readonly kind: 'vlan' }
  /** the receiver drops it, or it is no IP */
  | { readonly kind: 'nothing' }

const NOTHING: Seen = { kind: 'nothing' }
const MOBILITY = 135
const NO_NEXT = 59
const DCCP = 33
const UDP_LITE = 136
const TAGS = [0x8100, 0x88a8]
/** bytes of the header that rules, and what keeps flows apart, need */
const NEEDED: Readonly<Record<number, number>> = { [TCP]: 20, [UDP]: 8, [SCTP]: 4, [DCCP]: 4, [UDP_LITE]: 4, [ICMP]: 8, [ICMPV6]: 8 }

/** A tag of network 0 is a priority only: receivers take it off, and another behind it. */
export function untagged(frame: Uint8Array): Uint8Array {
  let at = 12
  while (TAGS.includes(at16(frame, at)) && (at16(frame, at + 2) & 0xfff) === 0) at += 4
  return at === 12 ? frame : concat([frame.subarray(0, 12), frame.subarray(at)])
}

export function readFrame(tagged: Uint8Array): Seen {
  const frame = untagged(tagged)
  const rest = frame.subarray(14)
  switch (at16(frame, 12)) {
    case 0x8100:
    case 0x88a8:
      return { kind: 'vlan' }
    case 0x0800:
      return readV4(rest)
    case 0x86dd:
      return readV6(rest)
    case 0x0806:
      return rest.length < 28 ? NOTHING : { kind: 'arp', operation: at16(rest, 6), sender: v4Addr(rest.subarray(14, 18)) }
    default:
      return NOTHING
  }
}

/** `quoted`: in an ICMP error, where the end may be missing. */
export function readV4(packet: Uint8Array, quoted = false): Seen {
  const header = ((packet[0] ?? 0) & 15) * 4
  const total = at16(packet, 2)
  if (packet.length < 20 || (packet[0] ?? 0) >> 4 !== 4 || header < 20 || packet.length < header) return NOTHING
  const broken = !quoted && (total < header || total > packet.length || checksum([packet.subarray(0, header)]) !== 0)
  const [src, dst, protocol] = [v4Addr(packet.subarray(12, 16)), v4Addr(packet.subarray(16, 20)), packet[9] ?? 0]
  const [offset, more] = [(at16(packet, 6) & 0x1fff) * 8, (at16(packet, 6) & 0x2000) !== 0]
  const key = `${src}${dst}${at16(packet, 4)} ${protocol}`
  return { kind: 'ip', v4: true, src, dst, hop: packet[8] ?? 0, mapped: false, broken, inside: insideV4() }

  function insideV4(): Inside {
    if (offset > 0) return { kind: 'later', key, offset }
    // of what is whole its receiver takes no more than it says it has, or nothing; of what is quoted the beginning
    // tells whose it is
    const l4 = packet.subarray(header, more && !quoted ? Math.max(header, total) : packet.length)
    const reading = readTransport(protocol, l4, ICMP)
    return more ? { kind: 'first', key, reading, ends: NEEDED[protocol] ?? 0, l4 } : { kind: 'whole', reading, l4 }
  }
}

export function readV6(packet: Uint8Array, quoted = false): Seen {
  const length = at16(packet, 4)
  if (packet.length < 40 || (packet[0] ?? 0) >> 4 !== 6) return NOTHING
  const [src, dst] = [packet.subarray(8, 24), packet.subarray(24, 40)]
  const ends = { src: addrFromBytes(src), dst: addrFromBytes(dst) }
  const within = readChain(packet[6] ?? 0, quoted ? packet.subarray(40) : packet.subarray(40, 40 + length), `${ends.src}${ends.dst}`)
  const padded = readChain(packet[6] ?? 0, packet.subarray(40), '')
  // what says that it is a fragment, behind the packet's end, its receiver never sees
  const isCut = within.kind === 'whole' && padded.kind !== 'whole'
  const inside = within.kind === 'whole' && !isCut ? padded : within
  const broken = !quoted && (isCut || 40 + length > packet.length)
  return { kind: 'ip', v4: false, ...ends, hop: packet[7] ?? 0, mapped: isMapped(src) || isMapped(dst), broken, inside }
}

function readChain(start: number, body: Uint8Array, ends: string): Inside {
  let [next, at] = [start, 0]
  let first: { readonly key: string; readonly from: number } | undefined
  const is = (reading: Reading | undefined, l4: Uint8Array): Inside =>
    first === undefined
      ? { kind: 'whole', reading, l4 }
      : { kind: 'first', key: first.key, reading, ends: at - first.from + (NEEDED[next] ?? 0), l4 }
  while ([0, 43, 44, 51, 60, MOBILITY].includes(next)) {
    const [kind, size] = [next, sizeOf(next, body[at + 1] ?? 0)]
    if (at + 8 > body.length || (at + size > body.length && kind !== MOBILITY)) return is(undefined, new Uint8Array())
    // nothing follows a mobility header, most often
    if (kind === MOBILITY && body[at] === NO_NEXT) break
    next = body[at] ?? 0
    if (kind === 44) {
      const [field, key] = [at16(body, at + 2), `${ends}${at16(body, at + 4)} ${at16(body, at + 6)}`]
      // within the first part of a datagram such a header speaks of what only its receiver puts together
      if (field >> 3 > 0) return first === undefined ? { kind: 'later', key, offset: field & ~7 } : is(undefined, new Uint8Array())
      if ((field & 1) !== 0) first ??= { key, from: at + 8 }
    }
    at += size
  }
  const l4 = body.subarray(at)
  return is(readTransport(next, l4, ICMPV6), l4)
}

function sizeOf(kind: number, length: number): number {
  return kind === 44 ? 8 : kind === 51 ? (length + 2) * 4 : (length + 1) * 8
}

function readTransport(protocol: number, l4: Uint8Array, icmpOf: number): Reading | undefined {
  if (l4.length < (NEEDED[protocol] ?? 0)) return undefined
  if (protocol === icmpOf) {
    const [type = 0, code = 0] = l4
    const id = isEcho(protocol, type) ? at16(l4, 4) : 0
    return { protocol, sport: id, dport: id, icmp: { type, code } }
  }
  const hasPorts = [TCP, UDP, SCTP, DCCP, UDP_LITE].includes(protocol)
  return { protocol, sport: hasPorts ? at16(l4, 0) : 0, dport: hasPorts ? at16(l4, 2) : 0, icmp: undefined }
}

/** What an ICMP error is about; undefined: it is none, or quotes too little. */
export function quoteOf(inside: Inside, v4: boolean): IpSeen | undefined {
  if (inside.kind === 'later' || inside.reading === undefined || !isError(inside.reading, v4)) return undefined
  const quote = inside.l4.subarray(8)
  if (quote.length < (v4 ? 20 : 40)) return undefined
  // a quote has 8 bytes of the transport header at least, not always all
  const padded = concat([quote, new Uint8Array(24)])
  const seen = v4 ? readV4(padded, true) : readV6(padded, true)
  return seen.kind === 'ip' ? seen : undefined
}

export function isError({ protocol, icmp }: Reading, v4: boolean): boolean {
  if (icmp === undefined || protocol !== (v4 ? ICMP : ICMPV6)) return false
  return v4 ? [3, 11, 12].includes(icmp.type) : icmp.type > 0 && icmp.type < 5
}

export function isEchoReply({ inside }: IpSeen): boolean {
  const reading = inside.kind === 'later' ? undefined : inside.reading
  return reading?.icmp !== undefined && isEcho(reading.protocol, reading.icmp.type) && [0, 129].includes(reading.icmp.type)
}

export function isAboutError({ v4, inside }: IpSeen): boolean {
  return inside.kind !== 'later' && inside.reading !== undefined && isError(inside.reading, v4)
}

function isEcho(protocol: number, type: number): boolean {
  return protocol === ICMP ? type === 0 || type === 8 : type === 128 || type === 129
}

/** The frame in a VXLAN header, as the receiver of UDP at that port takes it; undefined: none. */
export function innerOf(l4: Uint8Array): { readonly vni: number; readonly frame: Uint8Array; readonly isWhole: boolean } | undefined {
  if (l4.length < 8 + 8 + 14) return undefined
  const frame = l4.subarray(16)
  const isWhole = ((l4[8] ?? 0) & 8) !== 0
  // between Ethernet header and packet there may be whom the client meant
  const plain = at16(frame, 12) === 0x88b5 ? concat([frame.subarray(0, 12), frame.subarray(32)]) : frame
  return { vni: (at16(l4, 12) << 8) | (l4[14] ?? 0), frame: plain, isWhole }
}

function isMapped(addr: Uint8Array): boolean {
  return addr.subarray(0, 10).every((byte) => byte === 0) && addr[10] === 255 && addr[11] === 255
}

function v4Addr(bytes: Uint8Array): Addr {
  return addrFromBytes(bytes)
}

function at16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

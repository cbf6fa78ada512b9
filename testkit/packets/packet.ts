// SPDX-License-Identifier: Apache-2.0
/** Builds packets for tests, with right checksums, both families from one description. Layer: testkit. */
import { addrBytes, isV4, parseAddr } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'

export interface Endpoint {
  readonly addr: Addr
  readonly port: number
}

/** What every packet may say about its lower layers. */
export interface Envelope {
  readonly ttl?: number
  /** IPv4 only; default true */
  readonly df?: boolean
  readonly id?: number
  readonly tos?: number
  readonly macs?: { readonly src: string; readonly dst: string }
  /** fragment: offset in bytes (a multiple of 8); IPv6 gets a fragment header */
  readonly fragment?: { readonly offset: number; readonly more: boolean }
  /** IPv4 options, padded to 4 bytes by the caller */
  readonly options?: Uint8Array
  /** IPv6: how many destination-options headers of 8 bytes to put in front */
  readonly extensions?: number
}

/** What is beside MSS and window scale among TCP's options: SACK, timestamps as well, the MSS at an odd offset, an
 * unknown option that ends as a window scale does. */
export type TcpLayout = 'sack' | 'timestamps' | 'odd' | 'unknown'

export interface TcpOptions extends Envelope {
  /** any of S A F R P; default A */
  readonly flags?: string
  readonly seq?: number
  readonly ack?: number
  readonly window?: number
  readonly mss?: number
  readonly wscale?: number
  /** default: MSS and window scale alone */
  readonly layout?: TcpLayout
  readonly payload?: Uint8Array | string
}

export interface UdpOptions extends Envelope {
  readonly payload?: Uint8Array | string
  /** leaves the checksum field zero (IPv4) */
  readonly noChecksum?: boolean
}

export interface IcmpOptions extends Envelope {
  readonly type: number
  readonly code?: number
  /** the second 4 bytes: echo id and sequence, MTU, flags */
  readonly word?: number
  readonly body?: Uint8Array
  /** default: the one of the addresses' family */
  readonly protocol?: number
}

/** To the loopback device, where test runs happen. */
export const MACS = { src: '02:00:00:00:00:01', dst: '00:00:00:00:00:00' }
const TCP_FLAGS: Readonly<Record<string, number>> = { F: 1, S: 2, R: 4, P: 8, A: 16 }

/** '10.0.0.1:80' or '[fd00::1]:80' */
export function endpoint(text: string): Endpoint {
  const at = text.lastIndexOf(':')
  return { addr: parseAddr(text.slice(0, at).replace(/^\[|\]$/g, '')), port: Number(text.slice(at + 1)) }
}

/** Before the MSS and behind it; multiples of four bytes together. */
const LAYOUTS: Readonly<Record<TcpLayout, readonly [readonly number[], readonly number[]]>> = {
  sack: [[], [1, 1, 4, 2]],
  timestamps: [[], [4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]],
  odd: [[1], [1, 1, 1]],
  unknown: [[], [253, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 14]],
}

function tcpOptions({ mss, wscale, layout }: TcpOptions): number[] {
  const [before, behind] = layout === undefined ? [[], []] : LAYOUTS[layout]
  return [
    ...before,
    ...(mss === undefined ? [] : [2, 4, mss >> 8, mss & 255]),
    ...behind,
    ...(wscale === undefined ? [] : [1, 3, 3, wscale]),
  ]
}

export function tcp(from: string, to: string, options: TcpOptions = {}): Uint8Array {
  const src = endpoint(from)
  const dst = endpoint(to)
  const extra = tcpOptions(options)
  const payload = bytesOf(options.payload)
  const segment = new Uint8Array(20 + extra.length + payload.length)
  const view = viewOf(segment)
  view.setUint16(0, src.port)
  view.setUint16(2, dst.port)
  view.setUint32(4, options.seq ?? 1000)
  view.setUint32(8, options.ack ?? 0)
  segment[12] = ((20 + extra.length) / 4) << 4
  segment[13] = Object.entries(TCP_FLAGS).reduce((bits, [flag, bit]) => ((options.flags ?? 'A').includes(flag) ? bits | bit : bits), 0)
  view.setUint16(14, options.window ?? 512)
  segment.set(extra, 20)
  segment.set(payload, 20 + extra.length)
  return ip({ src: src.addr, dst: dst.addr, proto: 6, body: segment, checksumAt: 16 }, options)
}

export function udp(from: string, to: string, options: UdpOptions = {}): Uint8Array {
  const src = endpoint(from)
  const dst = endpoint(to)
  const payload = bytesOf(options.payload)
  const datagram = new Uint8Array(8 + payload.length)
  const view = viewOf(datagram)
  view.setUint16(0, src.port)
  view.setUint16(2, dst.port)
  view.setUint16(4, datagram.length)
  datagram.set(payload, 8)
  return ip({ src: src.addr, dst: dst.addr, proto: 17, body: datagram, checksumAt: options.noChecksum === true ? undefined : 6 }, options)
}

/** ICMP or ICMPv6, by the family of the addresses. */
export function icmp(from: string, to: string, options: IcmpOptions): Uint8Array {
  const src = parseAddr(from)
  const dst = parseAddr(to)
  const body = options.body ?? new Uint8Array()
  const message = new Uint8Array(8 + body.length)
  message[0] = options.type
  message[1] = options.code ?? 0
  viewOf(message).setUint32(4, options.word ?? 0)
  message.set(body, 8)
  if (isV4(src)) viewOf(message).setUint16(2, checksum([message]))
  return ip({ src, dst, proto: options.protocol ?? (isV4(src) ? 1 : 58), body: message, checksumAt: isV4(src) ? undefined : 2 }, options)
}

/** Of a protocol without ports that we know. */
export function plain(from: string, to: string, options: Envelope & { readonly proto: number; readonly body?: Uint8Array }): Uint8Array {
  const body = options.body ?? new Uint8Array(8)
  return ip({ src: parseAddr(from), dst: parseAddr(to), proto: options.proto, body, checksumAt: undefined }, options)
}

/** What follows the Ethernet header: what ICMP errors quote and tunnels carry. */
export function l3(frame: Uint8Array): Uint8Array {
  return frame.subarray(14)
}

/** The tunnel packet a node sends another. `origin`: whom the client meant, when the packet carries it. */
export function tunnel(
  from: string,
  to: string,
  options: {
    readonly inner: Uint8Array
    readonly vni: number
    readonly sport: number
    readonly port?: number
    readonly origin?: string
    readonly tos?: number
    /** inside, of the other node; default: that of our programs */
    readonly mac?: string
  },
): Uint8Array {
  const inner = l3(options.inner)
  const v4 = isV4(parseAddr(from))
  const ethertype = v4 ? 0x0800 : 0x86dd
  const origin = options.origin === undefined ? new Uint8Array() : originBytes(options.origin, ethertype)
  const payload = new Uint8Array(8 + 14 + origin.length + inner.length)
  payload[0] = 8
  viewOf(payload).setUint32(4, options.vni << 8)
  payload.fill(2, 8, 20)
  if (options.mac !== undefined) payload.set(macBytes(options.mac), 8)
  viewOf(payload).setUint16(20, origin.length > 0 ? 0x88b5 : ethertype)
  payload.set(origin, 22)
  payload.set(inner, 22 + origin.length)
  const at = (addr: string, port: number) => (v4 ? `${addr}:${port}` : `[${addr}]:${port}`)
  return udp(at(from, options.sport), at(to, options.port ?? 4789), {
    payload,
    noChecksum: true,
    ...(options.tos !== undefined && { tos: options.tos }),
  })
}

function originBytes(text: string, ethertype: number): Uint8Array {
  const { addr, port } = endpoint(text)
  const bytes = new Uint8Array(20)
  bytes.set(addrBytes(addr))
  viewOf(bytes).setUint16(16, port)
  viewOf(bytes).setUint16(18, ethertype)
  return bytes
}

export function arp(options: {
  readonly operation: 1 | 2
  readonly senderMac: string
  readonly sender: string
  readonly targetMac: string
  readonly target: string
  readonly macs: { src: string; dst: string }
}): Uint8Array {
  const body = new Uint8Array(28)
  body.set([0, 1, 8, 0, 6, 4, 0, options.operation])
  body.set(macBytes(options.senderMac), 8)
  body.set(addrBytes(parseAddr(options.sender)).subarray(12), 14)
  body.set(macBytes(options.targetMac), 18)
  body.set(addrBytes(parseAddr(options.target)).subarray(12), 24)
  return frame(0x0806, body, options.macs)
}

export function macBytes(mac: string): Uint8Array {
  return Uint8Array.from(mac.split(':'), (part) => parseInt(part, 16))
}

interface L4 {
  readonly src: Addr
  readonly dst: Addr
  readonly proto: number
  readonly body: Uint8Array
  /** where a checksum over pseudo header and body goes; undefined: none */
  readonly checksumAt: number | undefined
}

function ip(l4: L4, options: Envelope): Uint8Array {
  const v4 = isV4(l4.src)
  if (l4.checksumAt !== undefined) {
    const sum = checksum([pseudoHeader(l4), l4.body])
    viewOf(l4.body).setUint16(l4.checksumAt, sum === 0 && l4.proto === 17 ? 0xffff : sum)
  }
  const part = options.fragment === undefined ? l4.body : l4.body.subarray(options.fragment.offset)
  return frame(v4 ? 0x0800 : 0x86dd, v4 ? ip4(l4, part, options) : ip6(l4, part, options), options.macs ?? MACS)
}

function ip4(l4: L4, part: Uint8Array, options: Envelope): Uint8Array {
  const extra = options.options ?? new Uint8Array()
  const header = new Uint8Array(20 + extra.length)
  const view = viewOf(header)
  header[0] = 0x40 | (header.length / 4)
  header[1] = options.tos ?? 0
  view.setUint16(2, header.length + part.length)
  view.setUint16(4, options.id ?? 0)
  const flags = (options.df ?? true) && options.fragment === undefined ? 0x4000 : 0
  view.setUint16(6, flags | (options.fragment?.more === true ? 0x2000 : 0) | ((options.fragment?.offset ?? 0) / 8))
  header[8] = options.ttl ?? 64
  header[9] = l4.proto
  header.set(addrBytes(l4.src).subarray(12), 12)
  header.set(addrBytes(l4.dst).subarray(12), 16)
  header.set(extra, 20)
  view.setUint16(10, checksum([header]))
  return concat([header, part])
}

function ip6(l4: L4, part: Uint8Array, options: Envelope): Uint8Array {
  const extensions: Uint8Array[] = []
  let next = l4.proto
  if (options.fragment !== undefined) {
    const header = Uint8Array.from([next, 0, 0, 0, 0, 0, 0, 0])
    viewOf(header).setUint16(2, options.fragment.offset | (options.fragment.more ? 1 : 0))
    viewOf(header).setUint32(4, options.id ?? 0)
    extensions.unshift(header)
    next = 44
  }
  for (let i = 0; i < (options.extensions ?? 0); i++) {
    extensions.unshift(Uint8Array.from([next, 0, 1, 4, 0, 0, 0, 0]))
    next = 60
  }
  const rest = concat([...extensions, part])
  const header = new Uint8Array(40)
  viewOf(header).setUint16(0, 0x6000 | ((options.tos ?? 0) << 4))
  viewOf(header).setUint16(4, rest.length)
  header[6] = next
  header[7] = options.ttl ?? 64
  header.set(addrBytes(l4.src), 8)
  header.set(addrBytes(l4.dst), 24)
  return concat([header, rest])
}

function pseudoHeader(l4: L4): Uint8Array {
  const v4 = isV4(l4.src)
  const tail = v4 ? new Uint8Array(4) : new Uint8Array(8)
  viewOf(tail).setUint16(2, l4.body.length)
  tail[v4 ? 1 : 7] = l4.proto
  return concat([addrBytes(l4.src).subarray(v4 ? 12 : 0), addrBytes(l4.dst).subarray(v4 ? 12 : 0), tail])
}

/** RFC 1071 over the parts laid end to end; parts but the last have even length. */
export function checksum(parts: readonly Uint8Array[]): number {
  let sum = 0
  for (const part of parts) for (let i = 0; i < part.length; i += 2) sum += ((part[i] ?? 0) << 8) | (part[i + 1] ?? 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000)
  return ~sum & 0xffff
}

function frame(type: number, body: Uint8Array, macs: { readonly src: string; readonly dst: string }): Uint8Array {
  return concat([macBytes(macs.dst), macBytes(macs.src), Uint8Array.from([type >> 8, type & 255]), body])
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((n, part) => n + part.length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}

function bytesOf(value: Uint8Array | string | undefined): Uint8Array {
  return typeof value === 'string' ? new TextEncoder().encode(value) : (value ?? new Uint8Array())
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

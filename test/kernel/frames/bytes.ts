// SPDX-License-Identifier: Apache-2.0
/** Frames out of parts, right and wrong: headers in any order and number, fragments cut anywhere, tags. Layer: test. */
import { addrBytes } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { TCP, UDP, ICMP, ICMPV6 } from '#lib/policy/packet.ts'
import { checksum, concat } from '../../../testkit/packets/packet.ts'

export interface Flow {
  /** by the header: one of IPv6 may have IPv4 addresses in it */
  readonly v4: boolean
  readonly src: Addr
  readonly dst: Addr
  readonly protocol: number
  readonly sport: number
  readonly dport: number
}

/** An IPv6 extension header of so many bytes beyond its first eight. */
export interface Extension {
  readonly kind: number
  readonly extra: number
  /** of Fragment headers */
  readonly field?: number
  readonly id?: number
  /** of routing headers */
  readonly left?: number
}

export interface Shape {
  readonly hop: number
  /** IPv4 options, a multiple of four bytes */
  readonly options?: Uint8Array
  /** before a Fragment header, if there is one */
  readonly before?: readonly Extension[]
  /** behind it, or in a packet that is whole */
  readonly extensions?: readonly Extension[]
  /** in bytes; `length`: of the part */
  readonly fragment?: { readonly id: number; readonly offset: number; readonly length: number; readonly more: boolean }
  /** what the length field says beyond the truth */
  readonly lie?: number
  /** bytes that are missing at the end */
  readonly cut?: number
  /** behind the packet, as short frames have it */
  readonly padding?: number
}

export const V4_TYPE = 0x0800
export const V6_TYPE = 0x86dd

export function transport(
  flow: Flow,
  { flags = 2, payload = new Uint8Array(12) }: { readonly flags?: number; readonly payload?: Uint8Array } = {},
): Uint8Array {
  const { protocol, sport, dport } = flow
  const ports = word(sport, dport)
  switch (protocol) {
    case TCP:
      return summed(flow, concat([ports, Uint8Array.from([0, 0, 3, 232, 0, 0, 0, 0, 0x50, flags, 2, 0, 0, 0, 0, 0]), payload]), 16)
    case UDP:
      return summed(flow, concat([ports, word(8 + payload.length, 0), payload]), 6)
    case 132:
      return concat([ports, Uint8Array.from([0, 0, 0, 1, 0, 0, 0, 0]), payload])
    default:
      return concat([ports, payload])
  }
}

/** The four bytes behind the checksum are `rest`. */
export function message(
  flow: Flow,
  { type, code, rest, body }: { type: number; code: number; rest: Uint8Array; body: Uint8Array },
): Uint8Array {
  const bytes = concat([Uint8Array.from([type, code, 0, 0]), rest, body])
  return summed({ ...flow, protocol: flow.v4 ? ICMP : ICMPV6 }, bytes, 2)
}

/** From the Ethernet type's end on. */
export function packet({ v4: isV4, src, dst, protocol }: Flow, l4: Uint8Array, shape: Shape): Uint8Array {
  return isV4 ? v4(src, dst, { protocol, l4, shape }) : v6(src, dst, { protocol, l4, shape })
}

interface Parts {
  readonly protocol: number
  readonly l4: Uint8Array
  readonly shape: Shape
}

function v4(src: Addr, dst: Addr, { protocol, l4, shape }: Parts): Uint8Array {
  const { options = new Uint8Array(), fragment, hop, lie = 0 } = shape
  const part = fragment === undefined ? l4 : l4.subarray(fragment.offset, fragment.offset + fragment.length)
  const header = new Uint8Array(20 + options.length)
  const view = new DataView(header.buffer)
  header[0] = 0x40 | (header.length / 4)
  view.setUint16(2, (header.length + part.length + lie) & 0xffff)
  view.setUint16(4, fragment?.id ?? 0)
  view.setUint16(6, fragment === undefined ? 0 : (fragment.more ? 0x2000 : 0) | (fragment.offset / 8))
  header[8] = hop
  header[9] = protocol
  header.set(addrBytes(src).subarray(12), 12)
  header.set(addrBytes(dst).subarray(12), 16)
  header.set(options, 20)
  view.setUint16(10, checksum([header]))
  return ended(header, part, shape)
}

function v6(src: Addr, dst: Addr, { protocol, l4, shape }: Parts): Uint8Array {
  const { before = [], extensions = [], fragment, hop, lie = 0 } = shape
  const inside = chain(extensions, protocol, l4)
  const part = fragment === undefined ? inside.bytes : inside.bytes.subarray(fragment.offset, fragment.offset + fragment.length)
  const field = fragment === undefined ? 0 : fragment.offset | (fragment.more ? 1 : 0)
  const cutting: readonly Extension[] = fragment === undefined ? [] : [{ kind: 44, extra: 0, field, id: fragment.id }]
  const { kind, bytes } = chain([...before, ...cutting], inside.kind, part)
  const header = new Uint8Array(40)
  const view = new DataView(header.buffer)
  header[0] = 0x60
  view.setUint16(4, (bytes.length + lie) & 0xffff)
  header[6] = kind
  header[7] = hop
  header.set(addrBytes(src), 8)
  header.set(addrBytes(dst), 24)
  return ended(header, bytes, shape)
}

/** Test runs take no frame that ends before the IP header does. */
function ended(header: Uint8Array, rest: Uint8Array, { cut = 0, padding = 0 }: Shape): Uint8Array {
  return concat([header, rest.subarray(0, Math.max(0, rest.length - cut)), new Uint8Array(padding)])
}

/** `kind`: what the header in front of it must name. */
function chain(extensions: readonly Extension[], protocol: number, l4: Uint8Array): { readonly kind: number; readonly bytes: Uint8Array } {
  return extensions.reduceRight((behind, one) => ({ kind: one.kind, bytes: concat([extension(one, behind.kind), behind.bytes]) }), {
    kind: protocol,
    bytes: l4,
  })
}

function extension({ kind, extra, field = 0, id = 0, left = 0 }: Extension, next: number): Uint8Array {
  const bytes = new Uint8Array(8 + (kind === 44 ? 0 : extra))
  bytes[0] = next
  if (kind === 44) {
    bytes.set(word(field, 0), 2)
    bytes.set(word(id >>> 16, id & 0xffff), 4)
    return bytes
  }
  // of an authentication header the length counts fours
  bytes[1] = kind === 51 ? bytes.length / 4 - 2 : extra / 8
  if (kind === 43) bytes[3] = left
  else if (kind !== 51) bytes.set([1, bytes.length - 4], 2)
  return bytes
}

export interface FrameOptions {
  readonly tags?: readonly (readonly [type: number, tci: number])[]
  /** the MAC address that it is for */
  readonly to?: readonly number[]
}

export const TO_NODE: readonly number[] = [0, 0, 0, 0, 0, 0]
export const TO_ALL: readonly number[] = [255, 255, 255, 255, 255, 255]

export function ethernet(type: number, body: Uint8Array, { tags = [], to = TO_NODE }: FrameOptions = {}): Uint8Array {
  const macs = Uint8Array.from([...to, 2, 0, 0, 0, 0, 1])
  return concat([macs, ...tags.map(([kind, tci]) => word(kind, tci)), Uint8Array.from([type >> 8, type & 255]), body])
}

/** VXLAN's header, and an inner frame. */
export function vxlan(vni: number, inner: Uint8Array, flags = 8): Uint8Array {
  return concat([Uint8Array.from([flags, 0, 0, 0]), word(vni >> 8, (vni & 255) << 8), inner])
}

export function word(high: number, low: number): Uint8Array {
  return Uint8Array.from([high >> 8, high & 255, low >> 8, low & 255])
}

function summed({ v4: isV4, src, dst, protocol }: Flow, l4: Uint8Array, at: number): Uint8Array {
  const ends = isV4 ? [addrBytes(src).subarray(12), addrBytes(dst).subarray(12)] : [addrBytes(src), addrBytes(dst)]
  const pseudo = protocol === ICMP ? [] : [...ends, word(l4.length, protocol)]
  const sum = checksum([...pseudo, l4])
  l4[at] = sum >> 8
  l4[at + 1] = sum & 255
  return l4
}

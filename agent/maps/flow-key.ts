// SPDX-License-Identifier: Apache-2.0
/** Flow keys from the addresses and ports of a packet, and back, as conntrack/entry.h has it. Layer: agent/maps
 * (pure). */
import type { Addr } from '#lib/base/ip.ts'
import type { ShapeType } from './field-kinds.ts'
import type { CtKey, ctTuple } from './shapes.ts'
import { LITTLE_ENDIAN } from './view.ts'

export type CtTuple = ShapeType<typeof ctTuple>

/** Index of the leg: 0 for what lo sends. */
export type Direction = 0 | 1

/** The addresses and ports of packets of this direction. */
export function flowTuple(key: CtKey, direction: Direction): CtTuple {
  const tuple = { src: key.lo, sport: key.lo_port, dst: key.hi, dport: key.hi_port }
  return direction === 0 ? tuple : reversed(tuple)
}

/** Those of the answer. */
export function reversed({ src, dst, sport, dport }: CtTuple): CtTuple {
  return { src: dst, dst: src, sport: dport, dport: sport }
}

/** The key under which these packets are found, and their direction in it. */
export function flowKey(tuple: CtTuple, of: { readonly proto: number; readonly lane: number }): [key: CtKey, direction: Direction] {
  const direction = isFromHi(tuple) ? 1 : 0
  const { src, sport, dst, dport } = direction === 0 ? tuple : reversed(tuple)
  return [{ lo: src, lo_port: sport, hi: dst, hi_port: dport, proto: of.proto, lane: of.lane }, direction]
}

/** The words of addresses in this order. */
const WORDS = [3, 0, 1, 2]

function isFromHi({ src, dst, sport, dport }: CtTuple): boolean {
  for (const at of WORDS) {
    const [from, to] = [word(src, at), word(dst, at)]
    if (from !== to) return from > to
  }
  return asRead(sport) > asRead(dport)
}

/** Compared as this machine reads them, which need not be the order on the wire. */
function word(addr: Addr, at: number): number {
  const byte = (index: number): number => addr.charCodeAt(4 * at + (LITTLE_ENDIAN ? 3 - index : index))
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0
}

function asRead(port: number): number {
  return LITTLE_ENDIAN ? ((port & 0xff) << 8) | (port >> 8) : port
}

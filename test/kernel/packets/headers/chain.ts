// SPDX-License-Identifier: Apache-2.0
/** IPv6 extension headers in front of what a packet carries. Layer: test. */
import { concat } from '../../../../testkit/packets/packet.ts'

export interface Header {
  readonly type: number
  /** its first byte is filled in */
  readonly bytes: Uint8Array
}

const of = (type: number, ...bytes: readonly number[]): Header => ({ type, bytes: Uint8Array.of(0, ...bytes) })

export const HEADERS = {
  hop: of(0, 0, 1, 4, 0, 0, 0, 0),
  /** no segment left */
  routing: of(43, 0, 0, 0, 0, 0, 0, 0),
  destination: of(60, 0, 1, 4, 0, 0, 0, 0),
  long: { type: 60, bytes: Uint8Array.from([0, 7, 1, 60, ...new Array<number>(60).fill(0)]) },
  /** 24 bytes: its length has a unit of its own */
  ah: { type: 51, bytes: Uint8Array.from([0, 4, ...new Array<number>(22).fill(0)]) },
  mobility: of(135, 0, 1, 0, 0, 0, 0, 0),
  hip: of(139, 0, 1, 0x11, 0, 0, 0, 0),
  shim6: of(140, 0, 1, 0, 0, 0, 0, 0),
} as const

/** A Fragment header; alone in its packet with nothing more to follow. */
export function fragment(offset = 0, more = false, id = 77): Header {
  return of(44, 0, offset >> 8, (offset & 255) | Number(more), id >> 24, (id >> 16) & 255, (id >> 8) & 255, id & 255)
}

/** The frame with these between its IPv6 header and what follows that, of which `bytes` are left. */
export function chained(
  frame: Uint8Array,
  headers: readonly Header[],
  { from = 0, to = Infinity, last = frame[20] ?? 59 } = {},
): Uint8Array {
  const body = frame.subarray(54).subarray(from, to === Infinity ? undefined : to)
  const types = [...headers.map(({ type }) => type), last]
  const parts = headers.map(({ bytes }, at) => Uint8Array.of(types[at + 1] ?? 59, ...bytes.subarray(1)))
  const rest = concat([...parts, body])
  const out = concat([frame.subarray(0, 54), rest])
  out[18] = rest.length >> 8
  out[19] = rest.length & 255
  out[20] = types[0] ?? 59
  return out
}

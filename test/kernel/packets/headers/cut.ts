// SPDX-License-Identifier: Apache-2.0
/** Frames changed after they were built. Layer: test. */
import type { Family } from '../../../../testkit/packets/cluster.ts'

/** Shortens a first fragment to `bytes` of body, with its lengths and header checksum right. */
export function cut(f: Family, frame: Uint8Array, bytes: number): Uint8Array {
  const head = f.v4 ? 34 : 14 + 40 + 8
  const out = frame.slice(0, head + bytes)
  const view = new DataView(out.buffer)
  if (f.v4) {
    view.setUint16(16, 20 + bytes)
    fixHeader(out)
  } else view.setUint16(18, 8 + bytes)
  return out
}

/** Computes the IPv4 header's checksum. */
export function fixHeader(frame: Uint8Array): void {
  const view = new DataView(frame.buffer, frame.byteOffset)
  view.setUint16(24, 0)
  let sum = 0
  for (let i = 14; i < 34; i += 2) sum += view.getUint16(i)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  view.setUint16(24, ~sum & 0xffff)
}

// SPDX-License-Identifier: Apache-2.0
/** How byte arrays are looked at by all codecs. Layer: agent/maps. */

/** This machine's byte order; objects and BTF of the other one are refused. */
export const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

/** The same memory, not a copy. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

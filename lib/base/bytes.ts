// SPDX-License-Identifier: Apache-2.0
/** Byte strings: bytes held as latin1 text, one char a byte, so that they are compact, immutable and usable as Map keys. Layer: lib/base. */

/** A flat string of one char a byte. */
export function bytesToText(bytes: Uint8Array): string {
  let text = ''
  // fromCharCode with many arguments makes one flat string; the chunk bounds the argument count
  for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096))
  return text
}

/** The inverse of {@link bytesToText}; chars above 255 lose their high bits. */
export function textToBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}

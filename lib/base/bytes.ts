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

/** Writes `text` at `offset` without an intermediate array. */
export function writeText(target: Uint8Array, offset: number, text: string): void {
  for (let at = 0; at < text.length; at++) target[offset + at] = text.charCodeAt(at)
}

/** -1, 0, 1 as memcmp; the shorter of equal beginnings first. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference < 0 ? -1 : 1
  }
  return Math.sign(a.length - b.length)
}

/** Lower-case hex, two digits a byte. */
export function bytesToHex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text
}

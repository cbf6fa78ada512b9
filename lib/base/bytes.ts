// SPDX-License-Identifier: Apache-2.0
/** Byte strings: bytes held as latin1 text, one char a byte, so that they are compact, immutable and usable as Map
 * keys. Layer: lib/base. */

/** A flat string of one char a byte. */
export function bytesToText(bytes: Uint8Array): string {
  let text = ''
  // fromCharCode with many arguments makes one flat string; the chunk bounds the argument count. Bytes that are spread
  // go through an iterator, which takes five times as long.
  for (let at = 0; at < bytes.length; at += 4096)
    text += String(Reflect.apply(String.fromCharCode, undefined, bytes.subarray(at, at + 4096)))
  return text
}

/** The inverse of {@link bytesToText}; chars above 255 lose their high bits. */
export function textToBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}

/** `words` words of 64 bits of a little-endian machine, each as two numbers of 32 bits, the lower half first; zeros
 * behind those of the text. */
export function wordsOf(text: string, words: number): Uint32Array {
  const halves = new Uint32Array(2 * words)
  for (let at = 0; at < text.length; at++) halves[at >> 2] = (halves[at >> 2] ?? 0) | (text.charCodeAt(at) << (8 * (at & 3)))
  return halves
}

/** The other way round. */
export function textOfWords(halves: Uint32Array): string {
  const bytes = new Uint8Array(halves.length * 4)
  const view = new DataView(bytes.buffer)
  for (const [at, half] of halves.entries()) view.setUint32(4 * at, half, true)
  return bytesToText(bytes)
}

// SPDX-License-Identifier: Apache-2.0
/** Bitmaps over the rules of a block, in the form the map has them. Layer: agent/compile (pure). */
import { bytesToText } from '#lib/base/bytes.ts'

/** As many 64-bit words as the block uses, as a little-endian machine has them in memory: latin1 text, rule i is bit
 * i % 8 of char i / 8. What follows in the map's value is zero. Immutable, compact, comparable with `===`. */
export type Bits = string

/** Words that so many rules need. */
export function wordsFor(rules: number): number {
  return Math.max(1, Math.ceil(rules / 64))
}

/** A bitmap that is being made. */
export class BitDraft {
  readonly #bytes: Uint8Array

  constructor(words: number, from?: Bits) {
    this.#bytes = new Uint8Array(words * 8)
    if (from !== undefined) for (let at = 0; at < from.length; at++) this.#bytes[at] = from.charCodeAt(at)
  }

  put(bit: number, value: boolean): void {
    const at = bit >> 3
    const mask = 1 << (bit & 7)
    const byte = this.#bytes[at] ?? 0
    this.#bytes[at] = value ? byte | mask : byte & ~mask
  }

  /** Puts all bits that `mask`, which is no longer, has. */
  putAll(mask: BitDraft, value: boolean): void {
    for (const [at, bits] of mask.#bytes.entries()) {
      const byte = this.#bytes[at] ?? 0
      this.#bytes[at] = value ? byte | bits : byte & ~bits
    }
  }

  toBits(): Bits {
    return bytesToText(this.#bytes)
  }
}

/** As bits of a longer block would be. */
export function padded(bits: Bits, words: number): Bits {
  return bits.padEnd(8 * words, '\0')
}

/** Number of the lowest bit that is set, of those from `from` on. */
export function firstBit(bits: Bits, from: number): number | undefined {
  for (let at = from >> 3, mask = 0xff << (from & 7); at < bits.length; at++, mask = 0xff) {
    const byte = bits.charCodeAt(at) & mask
    if (byte !== 0) return 8 * at + 31 - Math.clz32(byte & -byte)
  }
  return undefined
}

/** Half a word, for machines and languages that have 32 bits. */
function half(bits: Bits, at: number): number {
  return bits.charCodeAt(at) | (bits.charCodeAt(at + 1) << 8) | (bits.charCodeAt(at + 2) << 16) | (bits.charCodeAt(at + 3) << 24)
}

/** A word as a number. */
export function wordAt(bits: Bits, at: number): bigint {
  return BigInt(half(bits, 8 * at) >>> 0) | (BigInt(half(bits, 8 * at + 4) >>> 0) << 32n)
}

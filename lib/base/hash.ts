// SPDX-License-Identifier: Apache-2.0
/** Fixed hashes, for names and ids that must be the same after every restart and in pure code. Layer: lib/base. */
import { hash } from 'node:crypto'

/** The first 64 bits of SHA-256 over the UTF-8 bytes of `text`, as 16 lower-case hex digits. For ids of what others
 * name, and that are not compared by content. */
export function sha256Start(text: string): string {
  return hash('sha256', text).slice(0, 16)
}

/** All of SHA-256 over the UTF-8 bytes of `text`, in the alphabet of base64url. */
export function sha256Text(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** 64-bit FNV-1a over the UTF-8 bytes of `text`, as 16 lower-case hex digits. An author of the text can choose
 * its hash: no id of anything that is not compared by content. */
export function fnv1a64(text: string): string {
  let high = 0xcbf29ce4
  let low = 0x84222325
  for (const byte of utf8(text)) {
    low = (low ^ byte) >>> 0
    // times 2^40 + 0x1b3 in two halves; each product stays below 2^53
    const product = low * 0x1b3
    high = (high * 0x1b3 + Math.floor(product / 0x1_0000_0000) + ((low << 8) >>> 0)) >>> 0
    low = product >>> 0
  }
  return hex32(high) + hex32(low)
}

/** 1 .. 2^30: tells texts apart in little space, where two that share a number do no harm. */
export function textNumber(text: string): number {
  let number = 0x811c9dc5
  for (let at = 0; at < text.length; at++) number = Math.imul(number ^ text.charCodeAt(at), 0x01000193)
  return (mix32(number) >>> 2) + 1
}

/** A number of 32 bits that differs in about half of its bits when one bit of `word` does (the end of MurmurHash3). */
export function mix32(word: number): number {
  let mixed = word ^ (word >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** SHA-1 over the UTF-8 bytes of `text`, as 40 hex digits. For names only: it protects nothing. */
export function sha1(text: string): string {
  const words = padded(utf8(text))
  let state: State = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]
  for (let block = 0; block < words.length; block += 16) state = sha1Block(state, words.subarray(block, block + 16))
  return state.map(hex32).join('')
}

type State = [number, number, number, number, number]

function sha1Block(before: State, block: Uint32Array): State {
  const w = new Uint32Array(80)
  w.set(block)
  for (let t = 16; t < 80; t++) w[t] = rotate((w[t - 3] ?? 0) ^ (w[t - 8] ?? 0) ^ (w[t - 14] ?? 0) ^ (w[t - 16] ?? 0), 1)
  let [a, b, c, d, e] = before
  for (let t = 0; t < 80; t++) {
    const next = (rotate(a, 5) + mix(t, [b, c, d]) + e + (w[t] ?? 0)) >>> 0
    e = d
    d = c
    c = rotate(b, 30)
    b = a
    a = next
  }
  return [(before[0] + a) >>> 0, (before[1] + b) >>> 0, (before[2] + c) >>> 0, (before[3] + d) >>> 0, (before[4] + e) >>> 0]
}

/** The round's function of three words, its constant added. */
function mix(t: number, [b, c, d]: readonly [number, number, number]): number {
  if (t < 20) return ((b & c) | (~b & d)) + 0x5a827999
  if (t < 40) return (b ^ c ^ d) + 0x6ed9eba1
  if (t < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
  return (b ^ c ^ d) + 0xca62c1d6
}

/** Big-endian words: the message, a one bit, zeros, the length in bits. */
function padded(bytes: Uint8Array): Uint32Array {
  const words = new Uint32Array(((bytes.length + 8) >> 6) * 16 + 16)
  const put = (at: number, byte: number): void => {
    words[at >> 2] = (words[at >> 2] ?? 0) | (byte << (24 - 8 * (at & 3)))
  }
  bytes.forEach((byte, at) => {
    put(at, byte)
  })
  put(bytes.length, 0x80)
  words[words.length - 1] = bytes.length * 8
  return words
}

function rotate(word: number, bits: number): number {
  return ((word << bits) | (word >>> (32 - bits))) >>> 0
}

function hex32(word: number): string {
  return word.toString(16).padStart(8, '0')
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

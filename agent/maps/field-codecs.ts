// SPDX-License-Identifier: Apache-2.0
/** Encoders and decoders of single fields. An edge: `as` stands where bytes become typed values. Layer: agent/maps. */
import { LayoutError } from '#lib/base/errors.ts'
import { isMac } from '#lib/base/mac.ts'
import type { Kind } from './field-kinds.ts'
import type { Layout } from './layout.ts'
import { layoutText } from './layout.ts'
import { LITTLE_ENDIAN } from './view.ts'

/** One field, or a struct of them, bound to its place. `covers` are the byte offsets that `put` writes. */
export interface FieldCodec {
  readonly covers: readonly number[]
  put(view: DataView, at: number, value: unknown): void
  get(view: DataView, at: number): unknown
}

type Scalar = Exclude<Kind, { kind: 'struct' | 'array' }>

const TWO_32 = 0x1_0000_0000

/** Throws LayoutError when the object's field is not what the kind says. */
export function scalarCodec(kind: Scalar, layout: Layout, where: string): FieldCodec {
  if (!fits(kind, layout)) throw new LayoutError(where, `${kindText(kind)} in the shape, ${layoutText(layout)} in the object`)
  const covers = Array.from({ length: layout.size }, (_, at) => at)
  switch (kind.kind) {
    case 'uint':
    case 'big':
      return { covers, ...integer(kind.size, kind.kind === 'uint' && LITTLE_ENDIAN, where) }
    case 'count':
      return { covers, ...count(where) }
    case 'ns':
      return { covers, ...nanoseconds(where) }
    case 'id':
      return { covers, ...hexId(where, LITTLE_ENDIAN) }
    case 'bigId':
      return { covers, ...hexId(where, false) }
    case 'u16List':
      return { covers, ...u16List(kind.length, where) }
    case 'bitList':
      return { covers, ...bitList(kind.words, where) }
    case 'addr':
      return { covers, ...text16(where) }
    case 'mac':
      return { covers, ...macText(where) }
  }
}

function fits(kind: Scalar, layout: Layout): boolean {
  switch (kind.kind) {
    case 'uint':
      return (layout.kind === 'enum' || isHostUnsigned(layout)) && layout.size === kind.size
    case 'big':
      return layout.kind === 'int' && layout.size === kind.size && layout.typedefs.includes(`__be${kind.size * 8}`)
    case 'count':
    case 'ns':
    case 'id':
      return isHostUnsigned(layout) && layout.size === 8
    case 'bigId':
      return layout.kind === 'array' && layout.length === 2 && layout.of.kind === 'int' && layout.of.typedefs.includes('__be32')
    case 'u16List':
      return layout.kind === 'array' && layout.length === kind.length && isHostUnsigned(layout.of) && layout.of.size === 2
    case 'bitList':
      return layout.kind === 'array' && layout.length === kind.words && isHostUnsigned(layout.of) && layout.of.size === 8
    case 'addr':
      return layout.kind === 'struct' && layout.name === 'addr' && layout.size === 16
    case 'mac':
      return layout.kind === 'array' && layout.length === 6 && isHostUnsigned(layout.of) && layout.of.size === 1
  }
}

/** Not signed, and by no typedef of a fixed byte order or a checksum. */
function isHostUnsigned(layout: Layout): boolean {
  return layout.kind === 'int' && !layout.signed && !layout.typedefs.some((name) => /^__(be|le|sum|wsum)/.test(name))
}

function kindText(kind: Scalar): string {
  switch (kind.kind) {
    case 'uint':
      return `u${kind.size * 8}`
    case 'big':
      return `be${kind.size * 8}`
    case 'count':
      return 'u64'
    case 'id':
      return 'id64'
    case 'u16List':
      return `u16[${kind.length}]`
    case 'bitList':
      return `u64[${kind.words}]`
    default:
      return kind.kind
  }
}

type Access = Pick<FieldCodec, 'put' | 'get'>

function integer(size: 1 | 2 | 4, little: boolean, where: string): Access {
  const limit = 2 ** (8 * size)
  const checked = (value: unknown): number => {
    const number = value as number
    if (!(Number.isInteger(number) && number >= 0 && number < limit)) throw misfit(where, value)
    return number
  }
  switch (size) {
    case 1:
      return { put: (view, at, value) => view.setUint8(at, checked(value)), get: (view, at) => view.getUint8(at) }
    case 2:
      return { put: (view, at, value) => view.setUint16(at, checked(value), little), get: (view, at) => view.getUint16(at, little) }
    case 4:
      return { put: (view, at, value) => view.setUint32(at, checked(value), little), get: (view, at) => view.getUint32(at, little) }
  }
}

function count(where: string): Access {
  return {
    put(view, at, value) {
      const number = value as number
      if (!(Number.isSafeInteger(number) && number >= 0)) throw misfit(where, value)
      putHigh(view, at, Math.floor(number / TWO_32))
      putLow(view, at, number % TWO_32)
    },
    get(view, at) {
      const number = high(view, at) * TWO_32 + low(view, at)
      if (number > Number.MAX_SAFE_INTEGER) throw misfit(where, number)
      return number
    },
  }
}

function nanoseconds(where: string): Access {
  return {
    put(view, at, value) {
      const whole = Math.round((value as number) * 1e6)
      if (!(whole >= 0 && whole < TWO_32 * TWO_32)) throw misfit(where, value)
      putHigh(view, at, Math.floor(whole / TWO_32))
      putLow(view, at, whole % TWO_32)
    },
    get: (view, at) => (high(view, at) * TWO_32 + low(view, at)) / 1e6,
  }
}

function hexId(where: string, little: boolean): Access {
  const [highAt, lowAt] = little ? [4, 0] : [0, 4]
  return {
    put(view, at, value) {
      const text = value as string
      if (text.length !== 16) throw misfit(where, value)
      view.setUint32(at + highAt, hexWord(text, 0, where), little)
      view.setUint32(at + lowAt, hexWord(text, 8, where), little)
    },
    get: (view, at) => hex8(view.getUint32(at + highAt, little)) + hex8(view.getUint32(at + lowAt, little)),
  }
}

/** Copied as bytes: the array is in this machine's order already. */
function u16List(length: number, where: string): Access {
  return {
    put(view, at, value) {
      const list = value as Uint16Array
      if (list.length !== length) throw misfit(where, `${list.length} numbers`)
      new Uint8Array(view.buffer, view.byteOffset + at, 2 * length).set(new Uint8Array(list.buffer, list.byteOffset, list.byteLength))
    },
    get: (view, at) => new Uint16Array(view.buffer.slice(view.byteOffset + at, view.byteOffset + at + 2 * length)),
  }
}

function bitList(words: number, where: string): Access {
  return {
    put(view, at, value) {
      const list = value as Uint32Array
      if (list.length !== 2 * words) throw misfit(where, `${list.length} numbers`)
      for (let word = 0; word < words; word++) {
        view.setUint32(at + 8 * word + (LITTLE_ENDIAN ? 0 : 4), list[2 * word] ?? 0, LITTLE_ENDIAN)
        view.setUint32(at + 8 * word + (LITTLE_ENDIAN ? 4 : 0), list[2 * word + 1] ?? 0, LITTLE_ENDIAN)
      }
    },
    get: (view, at) =>
      Uint32Array.from({ length: 2 * words }, (_, index) =>
        view.getUint32(at + 8 * (index >> 1) + (LITTLE_ENDIAN === ((index & 1) === 0) ? 0 : 4), LITTLE_ENDIAN),
      ),
  }
}

function text16(where: string): Access {
  return {
    put(view, at, value) {
      const text = value as string
      if (text.length !== 16) throw misfit(where, value)
      for (let index = 0; index < 16; index++) view.setUint8(at + index, text.charCodeAt(index))
    },
    get(view, at) {
      const byte = (index: number): number => view.getUint8(at + index)
      // one call with all chars makes a flat string
      return String.fromCharCode(
        byte(0),
        byte(1),
        byte(2),
        byte(3),
        byte(4),
        byte(5),
        byte(6),
        byte(7),
        byte(8),
        byte(9),
        byte(10),
        byte(11),
        byte(12),
        byte(13),
        byte(14),
        byte(15),
      )
    },
  }
}

function macText(where: string): Access {
  return {
    put(view, at, value) {
      const text = value as string
      if (!isMac(text)) throw misfit(where, value)
      for (let index = 0; index < 6; index++) view.setUint8(at + index, Number.parseInt(text.slice(3 * index, 3 * index + 2), 16))
    },
    get: (view, at) =>
      Array.from({ length: 6 }, (_, index) =>
        view
          .getUint8(at + index)
          .toString(16)
          .padStart(2, '0'),
      ).join(':'),
  }
}

/** The more significant half of 8 bytes. */
function putHigh(view: DataView, at: number, word: number): void {
  view.setUint32(at + (LITTLE_ENDIAN ? 4 : 0), word, LITTLE_ENDIAN)
}

function putLow(view: DataView, at: number, word: number): void {
  view.setUint32(at + (LITTLE_ENDIAN ? 0 : 4), word, LITTLE_ENDIAN)
}

function high(view: DataView, at: number): number {
  return view.getUint32(at + (LITTLE_ENDIAN ? 4 : 0), LITTLE_ENDIAN)
}

function low(view: DataView, at: number): number {
  return view.getUint32(at + (LITTLE_ENDIAN ? 0 : 4), LITTLE_ENDIAN)
}

function hex8(word: number): string {
  return word.toString(16).padStart(8, '0')
}

/** Eight lower-case hex digits from `from` on. */
function hexWord(text: string, from: number, where: string): number {
  let word = 0
  for (let at = from; at < from + 8; at++) {
    const char = text.charCodeAt(at)
    const digit = char >= 48 && char <= 57 ? char - 48 : char >= 97 && char <= 102 ? char - 87 : undefined
    if (digit === undefined) throw misfit(where, text)
    word = (word << 4) | digit
  }
  return word >>> 0
}

function misfit(where: string, value: unknown): LayoutError {
  return new LayoutError(where, `the value ${JSON.stringify(value)} does not fit`)
}

// SPDX-License-Identifier: Apache-2.0
/** Raw BTF bytes, as an object or the kernel holds them, to types. Layer: agent/maps. */
import { ParseError } from '#lib/base/errors.ts'
import { LITTLE_ENDIAN, viewOf } from './view.ts'

export interface BtfMember {
  /** empty for an anonymous struct or union */
  readonly name: string
  readonly type: number
  readonly bitOffset: number
  /** 0 when the member is no bitfield */
  readonly bitSize: number
}

export interface BtfEnumerator {
  readonly name: string
  readonly value: number
}

/** A variable in a data section; `offset` is meaningful only in BTF of an opened object. */
export interface BtfSectionVariable {
  readonly type: number
  readonly offset: number
  readonly size: number
}

interface Named {
  readonly id: number
  readonly name: string
}

interface Aggregate extends Named {
  readonly size: number
  readonly members: readonly BtfMember[]
}

/** `typedef` and the qualifiers stand for the type they refer to. */
export type BtfType =
  | (Named & { readonly kind: 'int'; readonly size: number; readonly bits: number; readonly bitOffset: number; readonly signed: boolean })
  | (Named & { readonly kind: 'array'; readonly element: number; readonly length: number })
  | (Aggregate & { readonly kind: 'struct' })
  | (Aggregate & { readonly kind: 'union' })
  | (Named & { readonly kind: 'enum'; readonly size: number; readonly values: readonly BtfEnumerator[] })
  | (Named & { readonly kind: 'typedef' | 'const' | 'volatile' | 'restrict' | 'typeTag' | 'pointer' | 'variable'; readonly type: number })
  | (Named & { readonly kind: 'section'; readonly size: number; readonly variables: readonly BtfSectionVariable[] })
  | (Named & { readonly kind: 'void' | 'forward' | 'function' | 'prototype' | 'float' | 'declTag' })

export type BtfTypeOf<K extends BtfType['kind']> = BtfType & { readonly kind: K }

/** Index = type id; 0 is void. */
export interface Btf {
  readonly types: readonly BtfType[]
}

const MAGIC = 0xeb9f
const FIXED_HEADER = 24

/** Throws ParseError on anything that is not whole, version 1 BTF of this machine's byte order. Never guesses: a
 * kind it does not know ends it, for its length cannot be known. */
export function parseBtf(bytes: Uint8Array): Btf {
  const view = viewOf(bytes)
  if (bytes.length < FIXED_HEADER) throw broken(bytes.length, 'shorter than its header')
  if (view.getUint16(0, LITTLE_ENDIAN) !== MAGIC) throw broken(0, 'bad magic, or of another byte order')
  if (view.getUint8(2) !== 1) throw broken(2, `version ${view.getUint8(2)}`)
  const header = view.getUint32(4, LITTLE_ENDIAN)
  const [typeStart, typeLength] = [header + view.getUint32(8, LITTLE_ENDIAN), view.getUint32(12, LITTLE_ENDIAN)]
  const [textStart, textLength] = [header + view.getUint32(16, LITTLE_ENDIAN), view.getUint32(20, LITTLE_ENDIAN)]
  if (header < FIXED_HEADER || typeStart + typeLength > bytes.length || textStart + textLength > bytes.length)
    throw broken(bytes.length, 'cut off')
  const reader = new Reader(bytes.subarray(typeStart, typeStart + typeLength), bytes.subarray(textStart, textStart + textLength))
  const types: BtfType[] = [{ id: 0, name: 'void', kind: 'void' }]
  while (reader.more()) types.push(readType(reader, types.length))
  return { types }
}

/** What a type id means; throws ParseError when the BTF has no such id. */
export function typeById(btf: Btf, id: number): BtfType {
  const type = btf.types[id]
  if (type === undefined) throw new ParseError('BTF type id', String(id), `there are ${btf.types.length}`)
  return type
}

/** The first type of that kind and name; undefined when there is none. */
export function findType<K extends BtfType['kind']>(btf: Btf, kind: K, name: string): BtfTypeOf<K> | undefined {
  const isWanted = (type: BtfType): type is BtfTypeOf<K> => type.kind === kind && type.name === name
  return btf.types.find(isWanted)
}

/** Name → number of a named enum; throws ParseError when the BTF has none of that name (no variable or field uses
 * it). */
export function enumValues(btf: Btf, name: string): ReadonlyMap<string, number> {
  const type = findType(btf, 'enum', name)
  if (type === undefined) throw new ParseError('enum of this BTF', name, 'nothing refers to it, so the compiler left it out')
  return new Map(type.values.map((value) => [value.name, value.value]))
}

/** One of them; throws ParseError as well when the enum has no such name. */
export function enumValue(btf: Btf, of: string, name: string): number {
  const value = enumValues(btf, of).get(name)
  if (value === undefined) throw new ParseError(`name of enum ${of}`, name)
  return value
}

/** Reads words one after another; every read is checked against the end. */
class Reader {
  readonly #view: DataView
  readonly #text: Uint8Array
  #at = 0

  constructor(types: Uint8Array, text: Uint8Array) {
    this.#view = viewOf(types)
    this.#text = text
  }

  more(): boolean {
    return this.#at < this.#view.byteLength
  }

  u32(): number {
    if (this.#at + 4 > this.#view.byteLength) throw broken(this.#at, 'the last type is cut off')
    this.#at += 4
    return this.#view.getUint32(this.#at - 4, LITTLE_ENDIAN)
  }

  i32(): number {
    return this.u32() | 0
  }

  name(): string {
    const offset = this.u32()
    if (offset >= this.#text.length) throw broken(this.#at, 'a name outside the strings')
    const end = this.#text.indexOf(0, offset)
    if (end < 0) throw broken(this.#at, 'a name without an end')
    return new TextDecoder().decode(this.#text.subarray(offset, end))
  }

  times<T>(count: number, read: () => T): T[] {
    const items: T[] = []
    for (let done = 0; done < count; done++) items.push(read())
    return items
  }
}

/** One type: name, info (count, kind, flag), size or type, and what the kind adds. */
function readType(reader: Reader, id: number): BtfType {
  const name = reader.name()
  const info = reader.u32()
  const [count, kind, flag] = [info & 0xffff, (info >>> 24) & 0x1f, info >>> 31 === 1]
  const word = reader.u32()
  const head = { id, name }
  switch (kind) {
    case 1:
      return { ...head, kind: 'int', size: word, ...intBits(reader.u32()) }
    case 2:
      return { ...head, kind: 'pointer', type: word }
    case 3: {
      const element = reader.u32()
      reader.u32() // the index's type
      return { ...head, kind: 'array', element, length: reader.u32() }
    }
    case 4:
      return { ...head, kind: 'struct', size: word, members: reader.times(count, () => readMember(reader, flag)) }
    case 5:
      return { ...head, kind: 'union', size: word, members: reader.times(count, () => readMember(reader, flag)) }
    case 6:
      return {
        ...head,
        kind: 'enum',
        size: word,
        values: reader.times(count, () => ({ name: reader.name(), value: flag ? reader.i32() : reader.u32() })),
      }
    case 7:
      return { ...head, kind: 'forward' }
    case 8:
      return { ...head, kind: 'typedef', type: word }
    case 9:
      return { ...head, kind: 'volatile', type: word }
    case 10:
      return { ...head, kind: 'const', type: word }
    case 11:
      return { ...head, kind: 'restrict', type: word }
    case 12:
      return { ...head, kind: 'function' }
    case 13:
      reader.times(2 * count, () => reader.u32())
      return { ...head, kind: 'prototype' }
    case 14:
      reader.u32() // linkage
      return { ...head, kind: 'variable', type: word }
    case 15:
      return {
        ...head,
        kind: 'section',
        size: word,
        variables: reader.times(count, () => ({ type: reader.u32(), offset: reader.u32(), size: reader.u32() })),
      }
    case 16:
      return { ...head, kind: 'float' }
    case 17:
      reader.u32() // index of the member or parameter it marks
      return { ...head, kind: 'declTag' }
    case 18:
      return { ...head, kind: 'typeTag', type: word }
    case 19:
      return { ...head, kind: 'enum', size: word, values: reader.times(count, () => readEnumerator64(reader, flag)) }
    default:
      throw broken(id, `type ${id} is of unknown kind ${kind}`)
  }
}

function intBits(word: number): { bits: number; bitOffset: number; signed: boolean } {
  return { bits: word & 0xff, bitOffset: (word >>> 16) & 0xff, signed: ((word >>> 24) & 1) === 1 }
}

/** With the struct's flag set, the offset's top byte is the size of a bitfield. */
function readMember(reader: Reader, flag: boolean): BtfMember {
  const name = reader.name()
  const type = reader.u32()
  const word = reader.u32()
  return { name, type, bitOffset: flag ? word & 0xffffff : word, bitSize: flag ? word >>> 24 : 0 }
}

function readEnumerator64(reader: Reader, signed: boolean): BtfEnumerator {
  const name = reader.name()
  const low = reader.u32()
  const high = signed ? reader.i32() : reader.u32()
  return { name, value: high * 0x1_0000_0000 + low }
}

function broken(at: number, reason: string): ParseError {
  return new ParseError('BTF section', `byte ${at}`, reason)
}

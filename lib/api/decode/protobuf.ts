// SPDX-License-Identifier: Apache-2.0
/** Kubernetes' Protocol Buffers → what its JSON would have been, of the fields that are asked for. The rest is
 * passed over unread, which is most of an object. Layer: lib/api (pure, but for texts that it remembers). */
import { NetplaneError } from '../../base/errors.ts'
import { isObject } from '../../base/object.ts'

type Raw = Readonly<Record<string, unknown>>

/** How a field's value is to be read. */
export type Form = 'text' | 'number' | 'flag' | 'time' | 'number-or-text' | 'texts-by-key' | 'bytes' | Message

export interface Field {
  readonly name: string
  readonly form: Form
  readonly many: boolean
}

/** Fields by their numbers; those without an entry are passed over. */
export type Message = readonly (Field | undefined)[]

/** What the server has sent is no such message. */
export class ProtobufError extends NetplaneError {
  readonly code = 'PROTOBUF'

  constructor(message: string) {
    super({ message })
  }
}

export function messageOf(fields: Readonly<Record<number, Field>>): Message {
  const message: (Field | undefined)[] = []
  for (const [number, field] of Object.entries(fields)) message[Number(number)] = field
  // no holes: they make looking up slow
  return Array.from(message)
}

export function one(name: string, form: Form): Field {
  return { name, form, many: false }
}

export function many(name: string, form: Form): Field {
  return { name, form, many: true }
}

/** Empty texts are left out, as from JSON: servers write them wherever Go has no pointer. Throws ProtobufError. */
export function readMessage(bytes: Buffer, message: Message): Raw {
  return new Reader(bytes).message(message, bytes.length)
}

const VARINT = 0
const EIGHT_BYTES = 1
const PREFIXED = 2
const FOUR_BYTES = 5

const TIME = messageOf({ 1: one('seconds', 'number') })
const NUMBER_OR_TEXT = messageOf({ 1: one('isText', 'number'), 2: one('number', 'number'), 3: one('text', 'text') })
const ENTRY = messageOf({ 1: one('key', 'text'), 2: one('value', 'text') })

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  message(message: Message, end: number): Raw {
    const raw: Record<string, unknown> = {}
    while (this.#at < end) {
      const tag = this.#varint()
      const field = message[tag >>> 3]
      const wire = tag & 7
      if (field === undefined) this.#skip(wire)
      else if (wire !== wireOf(field.form)) throw new ProtobufError(`${field.name} is of another type`)
      else this.#field(raw, field)
    }
    if (this.#at > end) throw new ProtobufError('a part is longer than the whole')
    return raw
  }

  #field(raw: Record<string, unknown>, { name, form, many: isMany }: Field): void {
    if (form === 'texts-by-key') {
      const { key = '', value = '' } = this.#part(ENTRY)
      const before = raw[name]
      const entries: Record<string, unknown> = isObject(before) ? before : {}
      entries[String(key)] = value
      raw[name] = entries
      return
    }
    const value = this.#value(form)
    if (!isMany) {
      if (value !== '') raw[name] = value
      return
    }
    const before = raw[name]
    if (Array.isArray(before)) before.push(value)
    else raw[name] = [value]
  }

  #value(form: Exclude<Form, 'texts-by-key'>): unknown {
    switch (form) {
      case 'text': {
        const end = this.#end()
        const text = textOf(this.#bytes, this.#at, end)
        this.#at = end
        return text
      }
      case 'number':
        return this.#varint()
      case 'flag':
        return this.#varint() !== 0
      case 'bytes': {
        const end = this.#end()
        const part = this.#bytes.subarray(this.#at, end)
        this.#at = end
        return part
      }
      case 'time': {
        const { seconds } = this.#part(TIME)
        const time = new Date(Number(seconds ?? 0) * 1000)
        if (Number.isNaN(time.getTime())) throw new ProtobufError(`${String(seconds)} is no time`)
        return time.toISOString()
      }
      case 'number-or-text': {
        const { isText = 0, number = 0, text = '' } = this.#part(NUMBER_OR_TEXT)
        return isText === 0 ? number : text
      }
      default:
        return this.#part(form)
    }
  }

  #part(message: Message): Raw {
    return this.message(message, this.#end())
  }

  #skip(wire: number): void {
    switch (wire) {
      case VARINT:
        this.#varint()
        return
      case PREFIXED:
        this.#at = this.#end()
        return
      case EIGHT_BYTES:
      case FOUR_BYTES:
        this.#at += wire === EIGHT_BYTES ? 8 : 4
        return
      default:
        throw new ProtobufError(`there is no wire type ${wire}`)
    }
  }

  /** Where the part ends whose length is next. */
  #end(): number {
    const length = this.#varint()
    const end = this.#at + length
    if (length < 0 || end > this.#bytes.length) throw new ProtobufError('it ends in the middle')
    return end
  }

  /** A whole number of 64 bits, with its sign; exact to 53 bits. */
  #varint(): number {
    const first = this.#bytes[this.#at]
    if (first === undefined || first >= 0x80) return this.#longVarint()
    this.#at++
    return first
  }

  #longVarint(): number {
    let low = 0
    let high = 0
    for (let bits = 0; bits < 70; bits += 7) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) throw new ProtobufError('it ends in the middle')
      const seven = byte & 0x7f
      if (bits < 28) low |= seven << bits
      else if (bits === 28) {
        low |= seven << 28
        high = seven >>> 4
      } else high |= seven << (bits - 32)
      if (byte < 0x80) return high === 0 ? low >>> 0 : (high | 0) * 0x1_0000_0000 + (low >>> 0)
    }
    throw new ProtobufError('a number has no end')
  }
}

/** Texts as they were last seen, by a hash of their bytes: most are names that come again and again, and making a
 * text costs more than finding one. */
const SEEN: string[] = Array.from({ length: 4096 }, () => '')
const LONGEST_SEEN = 48

function textOf(bytes: Buffer, start: number, end: number): string {
  const length = end - start
  if (length === 0) return ''
  if (length > LONGEST_SEEN) return bytes.toString('utf8', start, end)
  let hash = length
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] ?? 0)) | 0
  const slot = (hash ^ (hash >>> 15)) & 4095
  const seen = SEEN[slot] ?? ''
  if (seen.length === length && isText(seen, bytes, start)) return seen
  const text = bytes.toString('utf8', start, end)
  // of ASCII alone: other characters have more bytes than one
  if (text.length === length) SEEN[slot] = text
  return text
}

function isText(text: string, bytes: Buffer, start: number): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) !== bytes[start + at]) return false
  return true
}

function wireOf(form: Form): number {
  return form === 'number' || form === 'flag' ? VARINT : PREFIXED
}

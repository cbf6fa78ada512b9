// SPDX-License-Identifier: Apache-2.0
/** What lib/api/decode/protobuf.ts reads, the other way: objects as an API server would send them. Layer: bench
 * (pure). */
import { isObject } from '#lib/base/object.ts'
import type { Field, Form, Message } from '#lib/api/decode/protobuf.ts'

/** The fields that `message` has; others are left out. */
export function encode(message: Message, object: object): Buffer {
  const parts = message.flatMap((field, number) => {
    const value: unknown = field === undefined ? undefined : Reflect.get(object, field.name)
    return field === undefined || value === undefined ? [] : encodeField(number, field, value)
  })
  return Buffer.concat(parts)
}

/** A part with its length in front. */
export function prefixed(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(BigInt(number * 8 + 2)), varint(BigInt(bytes.length)), bytes])
}

/** As an object that stands for itself: a page, or what an event is of. */
export function enveloped(kind: string, bytes: Buffer): Buffer {
  const typeMeta = prefixed(2, Buffer.from(kind))
  return Buffer.concat([Buffer.from('k8s\0'), prefixed(1, typeMeta), prefixed(2, bytes)])
}

/** A part of a watch. */
export function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

function encodeField(number: number, { form, many }: Field, value: unknown): readonly Buffer[] {
  if (form === 'texts-by-key') return Object.entries(isObject(value) ? value : {}).map((entry) => prefixed(number, entryOf(entry)))
  return (many && Array.isArray(value) ? value : [value]).map((one: unknown) => encodeValue(number, form, one))
}

function entryOf([key, value]: readonly [string, unknown]): Buffer {
  return Buffer.concat([prefixed(1, Buffer.from(key)), prefixed(2, Buffer.from(String(value)))])
}

function encodeValue(number: number, form: Exclude<Form, 'texts-by-key'>, value: unknown): Buffer {
  switch (form) {
    case 'number':
    case 'flag':
      return numbered(number, Number(value))
    case 'text':
      return prefixed(number, Buffer.from(String(value)))
    case 'bytes':
      return prefixed(number, Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value)))
    case 'time':
      return prefixed(number, numbered(1, Math.floor(Date.parse(String(value)) / 1000)))
    case 'number-or-text':
      return prefixed(
        number,
        typeof value === 'number' ? numbered(2, value) : Buffer.concat([numbered(1, 1), prefixed(3, Buffer.from(String(value)))]),
      )
    default:
      return prefixed(number, encode(form, isObject(value) ? value : {}))
  }
}

function numbered(number: number, value: number): Buffer {
  return Buffer.concat([varint(BigInt(number * 8)), varint(BigInt.asUintN(64, BigInt(value)))])
}

function varint(value: bigint): Buffer {
  const bytes: number[] = []
  for (let left = value; ; left >>= 7n) {
    if (left < 0x80n) return Buffer.from([...bytes, Number(left)])
    bytes.push(Number(left & 0x7fn) | 0x80)
  }
}

// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { many, messageOf, one, ProtobufError, readMessage, type Field, type Message } from '#lib/api/decode/protobuf.ts'
import { encode, prefixed } from '../../../../bench/control/encode.ts'

const INNER = messageOf({ 1: one('flag', 'flag'), 2: one('number', 'number'), 40: many('texts', 'text') })
const ALL = messageOf({
  1: one('text', 'text'),
  2: one('number', 'number'),
  3: one('flag', 'flag'),
  4: one('time', 'time'),
  5: one('port', 'number-or-text'),
  6: one('labels', 'texts-by-key'),
  7: one('inner', INNER),
  8: many('inners', INNER),
  9: many('numbers', 'number'),
})

/** What servers say and JSON would: no empty texts. */
function valueOf({ form }: Field): fc.Arbitrary<unknown> {
  switch (form) {
    case 'text':
      return fc.string({ minLength: 1, unit: 'grapheme' })
    case 'number':
      return fc.oneof(fc.integer(), fc.maxSafeInteger())
    case 'flag':
      return fc.boolean()
    case 'time':
      return fc.integer({ min: 0, max: 4e9 }).map((seconds) => new Date(seconds * 1000).toISOString())
    case 'number-or-text':
      return fc.oneof(fc.integer({ min: 0, max: 65_535 }), fc.string({ minLength: 1 }))
    case 'texts-by-key':
      return fc.dictionary(fc.stringMatching(/^[a-z][a-z./]{0,60}$/), fc.string(), { minKeys: 1, noNullPrototype: true })
    case 'bytes':
      return fc.uint8Array().map((bytes) => Buffer.from(bytes))
    default:
      return objectOf(form)
  }
}

function objectOf(message: Message): fc.Arbitrary<object> {
  const fields = message.flatMap((field) => (field === undefined ? [] : [field]))
  const values = fields.map((field) => {
    return [field.name, field.many ? fc.array(valueOf(field), { minLength: 1, maxLength: 4 }) : valueOf(field)] as const
  })
  return fc.record(Object.fromEntries(values), { requiredKeys: [], noNullPrototype: true })
}

/** Fields of numbers that no reader asks for, of each type. */
const STRANGE = Buffer.concat([
  prefixed(100, Buffer.from('k8s')),
  Buffer.from([0xa8, 0x06, 0x96, 0x01]),
  Buffer.from([0xad, 0x06, 1, 2, 3, 4]),
  Buffer.from([0xa9, 0x06, 1, 2, 3, 4, 5, 6, 7, 8]),
])

describe('a message', () => {
  test('has what was put into it, whatever stands beside it', () => {
    fc.assert(
      fc.property(objectOf(ALL), (object) => {
        const bytes = encode(ALL, object)
        expect(readMessage(bytes, ALL)).toEqual(object)
        expect(readMessage(Buffer.concat([STRANGE, bytes, STRANGE]), ALL)).toEqual(object)
      }),
    )
  })

  test('has no empty texts, but empty elements and zeros', () => {
    const object = { text: '', number: 0, flag: false, inner: { texts: [''] } }
    expect(readMessage(encode(ALL, object), ALL)).toEqual({ number: 0, flag: false, inner: { texts: [''] } })
  })

  test('texts that share a place where they are remembered are not mixed up', () => {
    const texts = Array.from({ length: 50_000 }, (_, at) => `pod-${at}`)
    for (const text of [...texts, ...texts]) expect(readMessage(encode(ALL, { text }), ALL)['text']).toBe(text)
  })

  test('texts of other characters are not taken for those of as many letters as they have bytes', () => {
    const letters = Array.from({ length: 128 }, (_, at) => String.fromCodePoint(0x80 + at))
    const threes = letters.flatMap((a) => letters.flatMap((b) => letters.slice(0, 8).map((c) => a + b + c)))
    const texts = threes.flatMap((three) => [String.fromCodePoint(...Buffer.from(three)), three])
    expect(texts.filter((text) => readMessage(encode(ALL, { text }), ALL)['text'] !== text)).toEqual([])
  })

  test('with a time beyond all times is refused', () => {
    const bytes = prefixed(4, encode(messageOf({ 1: one('seconds', 'number') }), { seconds: 2 ** 52 }))
    expect(() => readMessage(bytes, ALL)).toThrow('4503599627370496 is no time')
  })

  test('of another type than is expected is refused with the field’s name', () => {
    expect(() => readMessage(encode(messageOf({ 1: one('x', 'number') }), { x: 1 }), ALL)).toThrow('text is of another type')
  })

  test.each([
    [[0x0a, 0x05, 0x41]],
    [[0x10]],
    [[0x10, ...Array.from({ length: 12 }, () => 0xff)]],
    [[0x0b]],
    [[0x3a, 0x02, 0x08]],
    [[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
  ])('that is cut off or malformed is refused: %j', (bytes) => {
    expect(() => readMessage(Buffer.from(bytes), ALL)).toThrow(ProtobufError)
  })
})

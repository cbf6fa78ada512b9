// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromBinary } from '@bufbuild/protobuf'
import { PolicyMatchSchema } from '#lib/flows/wire/goldmane_pb.ts'
import { readPart, writePart } from '#lib/flows/wire/policy-match.ts'
import { field, hex } from './bytes.ts'

const default_ = '64 65 66 61 75 6c 74'

describe('parts of a PolicyMatch', () => {
  test.each([
    ['nothing is any', '', undefined],
    ['a text, up to 3.31', default_, { value: 'default', isFuzzy: false }],
    ['StringMatch, from 3.32', `0a 07 ${default_}`, { value: 'default', isFuzzy: false }],
    ['StringMatch that is fuzzy', `0a 07 ${default_} 10 01`, { value: 'default', isFuzzy: true }],
    ['StringMatch of no value is any', '10 01', undefined],
    ['what only begins like StringMatch is a name', '0a 7f 61', { value: '\n\x7fa', isFuzzy: false }],
  ])('%s', (_title, bytes, match) => {
    expect(readPart(hex(bytes))).toEqual(match)
  })

  test('both generations in their places', () => {
    const whole = hex(`08 06 # kind = 1
      ${Buffer.from(field('12', hex(default_))).toString('hex')} # tier = 2, a text
      ${Buffer.from(field('22', hex('0a 01 78'))).toString('hex')} # name = 4, StringMatch`)
    const { tier, namespace, name } = fromBinary(PolicyMatchSchema, whole)
    expect([tier, namespace, name].map(readPart)).toEqual([{ value: 'default', isFuzzy: false }, undefined, { value: 'x', isFuzzy: false }])
  })

  test('what we write comes back', () => {
    const match = fc.record({ value: fc.string({ minLength: 1 }), isFuzzy: fc.boolean() })
    fc.assert(
      fc.property(match, (one) => {
        expect(readPart(writePart(one))).toEqual(one)
      }),
    )
    expect(readPart(writePart(undefined))).toBeUndefined()
  })
})

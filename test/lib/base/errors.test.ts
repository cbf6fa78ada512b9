// SPDX-License-Identifier: Apache-2.0
/** What errors say and keep. Layer: test. */
import { expect, test } from 'vitest'
import { errorCode, errorText, MapError, ParseError, ProgramError } from '#lib/base/errors.ts'
import { rejectedText } from '#lib/base/result.ts'

test('an error has name, code, fields and cause', () => {
  const cause = Object.assign(new Error('no such file'), { code: 'ENOENT' })
  const error = new MapError({ map: 'np_ct', op: 'update', cause })
  expect(error).toMatchObject({
    name: 'MapError',
    code: 'MAP',
    map: 'np_ct',
    op: 'update',
    message: 'map np_ct: update: no such file',
    cause,
  })
  expect(new ProgramError({ program: 'host', op: 'load', reason: 'refused', verifierLog: 'R1' })).toMatchObject({
    message: 'program host: load: refused',
    verifierLog: 'R1',
  })
  expect(new ParseError('IP address', 'x').message).toBe('not an IP address: "x"')
})

test('errorCode takes whatever was thrown', () => {
  expect([
    errorCode(new ParseError('port', 'x')),
    errorCode(Object.assign(new Error('x'), { code: 'EBUSY' })),
    errorCode('x'),
    errorCode(new Error('x')),
  ]).toEqual(['PARSE', 'EBUSY', undefined, undefined])
  expect([errorText(new Error('x')), errorText('y'), errorText(undefined)]).toEqual(['x', 'y', 'undefined'])
})

test('rejections read as sentences', () => {
  expect(rejectedText({ ref: 'Service/default/web', path: 'spec.ports[0].port', reason: 'must be 1..65535' })).toBe(
    'Service default/web: spec.ports[0].port: must be 1..65535',
  )
  expect(rejectedText({ ref: '', path: '', reason: 'is empty' })).toBe('is empty')
})

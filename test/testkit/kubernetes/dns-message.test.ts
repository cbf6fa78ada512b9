// SPDX-License-Identifier: Apache-2.0
/** Questions and answers of DNS, byte by byte. Layer: test. */
import { expect, test } from 'vitest'
import { A, AAAA, formatAnswer, NO_SUCH_NAME, parseQuestion, PTR, SRV } from '../../../testkit/kubernetes/dns-message.ts'

function question(type: number): Buffer {
  return Buffer.from(
    `1234 0100 0001 0000 0000 0000 03 ${hex('Web')} 01 ${hex('n')} 00 00${type.toString(16).padStart(2, '0')} 0001`.replaceAll(' ', ''),
    'hex',
  )
}

function hex(text: string): string {
  return Buffer.from(text).toString('hex')
}

test('a question is read', () => {
  expect(parseQuestion(question(A))).toMatchObject({ id: 0x1234, name: 'web.n', type: A })
})

test.each([
  ['nothing', Buffer.alloc(0)],
  ['cut short', question(A).subarray(0, 18)],
  ['an answer', Buffer.from(question(A)).fill(0x80, 2, 3)],
])('%s is none', (_, message) => {
  expect(parseQuestion(message)).toBeUndefined()
})

test.each([
  [A, '0001', '0a000001'],
  [AAAA, '001c', 'fd000000000000000000000000000001'],
])('addresses of the family that was asked for (%i)', (type, code, bytes) => {
  const asked = parseQuestion(question(type))
  const answer = asked && formatAnswer(asked, { addresses: ['10.0.0.1', 'fd00::1'], code: 0 }).toString('hex')
  expect(answer).toContain('12348580000100010000')
  expect(answer?.endsWith(`c00c${code}000100000001${(bytes.length / 2).toString(16).padStart(4, '0')}${bytes}`)).toBe(true)
})

test('an alias comes first, and what it is called has the addresses', () => {
  const asked = parseQuestion(question(A))
  const answer = asked && formatAnswer(asked, { alias: 'a.b', addresses: ['10.0.0.1'], code: 0 }).toString('hex')
  expect(answer?.endsWith('c00c000500010000000100050161016200' + '0161016200000100010000000100040a000001')).toBe(true)
})

test.each([
  [PTR, { addresses: [], pointer: 'a.b', code: 0 }, '000c000100000001' + '0005' + '0161016200'],
  [SRV, { addresses: [], places: [{ host: 'a.b', port: 80 }], code: 0 }, '0021000100000001' + '000b000000010050' + '0161016200'],
])('an answer has the name of an address, or the place of a service (%i)', (type, answer, bytes) => {
  const asked = parseQuestion(question(type))
  expect((asked && formatAnswer(asked, answer).toString('hex'))?.endsWith(`c00c${bytes}`)).toBe(true)
})

test('a name that is not there has a code of its own', () => {
  const asked = parseQuestion(question(A))
  expect(asked && formatAnswer(asked, { addresses: [], code: NO_SUCH_NAME }).toString('hex', 2, 12)).toBe('85830001000000000000')
})

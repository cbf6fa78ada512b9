// SPDX-License-Identifier: Apache-2.0
/** Single values of the configuration. Layer: test. */
import { describe, expect, test } from 'vitest'
import type { Json } from '#lib/model/felix-configuration.ts'
import { formatCidr, parseAddr } from '#lib/base/ip.ts'
import { durationText } from '#lib/base/time/duration.ts'
import { failsafePorts } from '#agent/config/failsafes.ts'
import { cidrList, duration, flag, integer, port, regularExpression, text, word } from '#agent/config/parsers.ts'
import type { Parser } from '#agent/config/parsers.ts'

function show<T>(parser: Parser<T>, value: Json): T | string {
  const outcome = parser.parse(value)
  return outcome.kind === 'ok' ? outcome.value : `no: ${outcome.reason}`
}

describe('durations', () => {
  test.each<[Json, number | string]>([
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['250ms', 250],
    ['1.5s', 1_500],
    ['8760h', 31_536_000_000],
    ['Auto', 7],
    ['8761h', 'no: must be a duration like 1h30m, 90s or 250ms, at most 8760h'],
    ...['', '0s', '-1s', '5', 's', '1d', '1h 30m', '1e3s', 5, null, {}].map((wrong): [Json, string] => [
      wrong,
      'no: must be a duration like 1h30m, 90s or 250ms, at most 8760h',
    ]),
  ])('%j is %j', (value, expected) => {
    expect(show(duration(7), value)).toBe(expected)
  })

  test('are printed short', () => {
    expect([432_000_000, 5_400_000, 90_000, 120_000, 250].map(durationText)).toEqual(['120h', '90m', '90s', '120s', '250ms'])
  })
})

test('the others', () => {
  expect([show(flag, true), show(flag, 'true')]).toEqual([true, 'no: must be true or false'])
  expect([show(port, 80), show(port, 0), show(port, '80')]).toEqual([80, 'no: must be 1..65535', 'no: must be 1..65535'])
  expect([show(integer(1, 5), 5), show(integer(1, 5), 6), show(integer(1, 5), 1.5)]).toEqual([
    5,
    'no: must be a whole number, 1..5',
    'no: must be a whole number, 1..5',
  ])
  expect([show(text('a letter', /^[a-z]$/), 'a'), show(text('a letter', /^[a-z]$/), 'ab')]).toEqual(['a', 'no: must be a letter'])
  expect([show(regularExpression, 'eth.*'), show(regularExpression, '('), show(regularExpression, '')]).toEqual([
    'eth.*',
    'no: must be a regular expression',
    'no: must be a regular expression',
  ])
  const words = word({ On: 1, Off: 0 }, { Maybe: 'not yet' })
  expect([show(words, 'Off'), show(words, 'Maybe'), show(words, 'toString'), show(words, 1)]).toEqual([
    0,
    'no: not yet',
    'no: must be one of On, Off',
    'no: must be one of On, Off',
  ])
})

test('a prefix in an old form, which an API server may have, is read as what it means', () => {
  const list = (...prefixes: readonly string[]): string => {
    const cidrs = show(cidrList, prefixes)
    return typeof cidrs === 'string' ? cidrs : cidrs.map(formatCidr).join(' ')
  }
  expect(list('192.0.2.0/24', '10.244.001.0/24', '::ffff:10.245.1.0/120')).toBe('192.0.2.0/24 10.244.1.0/24 10.245.1.0/24')
  expect(list('10.244.1.0')).toBe('no: must be a list of IP prefixes, like 10.0.0.0/24: "10.244.1.0" is none')
  expect(show(failsafePorts, [{ protocol: 'TCP', port: 22, net: '010.0.0.0/8' }])).toEqual([
    { protocol: 6, port: 22, net: { addr: parseAddr('10.0.0.0'), bits: 8 } },
  ])
})

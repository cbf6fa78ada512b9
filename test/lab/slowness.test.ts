// SPDX-License-Identifier: Apache-2.0
/** Times and rates of a slow machine. */
import { expect, test } from 'vitest'
import { longer, readSlowness, slower } from '../../lab/slowness.ts'

test.each([
  [undefined, 1],
  ['1', 1],
  ['2.5', 2.5],
  ['10', 10],
])('NETPLANE_LAB_SLOWNESS=%s', (text, wanted) => {
  expect(readSlowness(text)).toBe(wanted)
})

test.each(['', '0', '0.5', '-3', 'slow', '1001', 'NaN'])('NETPLANE_LAB_SLOWNESS=%j makes no sense', (text) => {
  expect(() => readSlowness(text)).toThrow('NETPLANE_LAB_SLOWNESS')
})

test('a machine ten times slower is waited for ten times as long, and asked a tenth as often', () => {
  expect([longer(2000, 10), slower(200, 10)]).toEqual([20_000, 20])
  expect([longer(2000, 1), slower(200, 1)]).toEqual([2000, 200])
})

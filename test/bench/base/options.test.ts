// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { parseOptions } from '../../../bench/base/options.ts'

test('everything runs, in full, unless options say otherwise', () => {
  expect(parseOptions([])).toEqual({ parts: ['packet', 'control', 'path', 'loss'], quick: false, runs: undefined, out: undefined })
  expect(parseOptions(['--quick', '--only', 'path', '--only', 'packet', '--out', 'x'])).toEqual({
    parts: ['path', 'packet'],
    quick: true,
    runs: undefined,
    out: 'x',
  })
  expect(parseOptions(['--only', 'loss', '--runs', '100'])).toMatchObject({ parts: ['loss'], runs: 100 })
  expect(parseOptions(['--help'])).toBe('help')
})

test('an option that bench does not know is refused by name', () => {
  expect(() => parseOptions(['--only', 'disk'])).toThrow('--only')
  expect(() => parseOptions(['--fast'])).toThrow('--fast')
  expect(() => parseOptions(['--runs', 'many'])).toThrow('--runs')
})

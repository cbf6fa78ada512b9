// SPDX-License-Identifier: Apache-2.0
/** Which kernels are booted, and for what. */
import { expect, test } from 'vitest'
import type { Row } from './kernel.ts'
import { partsOf, worksOf } from './works.ts'

const ROW = { arch: 'amd64', gate: 'all', demo: false, preflight: false, isSupported: true } as const
const OLD: Row = { ...ROW, name: 'old', demo: true }
const LATER: Row = { ...ROW, name: 'later' }
const OUTSIDE: Row = { ...ROW, name: 'outside', gate: undefined, preflight: true }
const NONE: Row = { ...ROW, name: 'none', preflight: true, isSupported: false }

test.each([
  ['nothing', {}, { old: ['tests'], later: ['tests'], outside: [], none: [] }],
  ['all', { all: true }, { old: ['demo', 'tests'], later: ['tests'], outside: ['tests', 'preflight'], none: ['preflight'] }],
  ['a name', { names: ['outside'] }, { old: [], later: [], outside: ['tests'], none: [] }],
  ['a name that could have the demo', { names: ['old'] }, { old: ['tests'], later: [], outside: [], none: [] }],
  ['one that is not supported', { names: ['none'] }, { old: [], later: [], outside: [], none: ['preflight'] }],
  ['the demo', { only: 'demo' }, { old: ['demo'], later: [], outside: [], none: [] }],
  ['the demo by name', { only: 'demo', names: ['later'] }, { old: [], later: ['demo'], outside: [], none: [] }],
  ['the preflight', { only: 'preflight' }, { old: [], later: [], outside: ['preflight'], none: ['preflight'] }],
] as const)('asked for %s', (_name, asked, wanted) => {
  const works = [OLD, LATER, OUTSIDE, NONE].map((row) => [row.name, worksOf(row, { names: [], all: false, only: undefined, ...asked })])
  expect(Object.fromEntries(works)).toEqual(wanted)
})

test('CI has of some kernels a part alone; others, and whoever names the kernel, have all that it can', () => {
  const row: Row = { ...ROW, name: 'middle', gate: 'usual' }
  const asked = { names: [], all: false, only: undefined }
  expect(partsOf(row, 'all', asked)).toBe('usual')
  expect([partsOf(LATER, 'all', asked), partsOf(row, 'all', { ...asked, all: true })]).toEqual(['all', 'all'])
  expect(partsOf(row, 'all', { ...asked, names: ['middle'] })).toBe('all')
})

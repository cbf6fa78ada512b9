// SPDX-License-Identifier: Apache-2.0
/** Which kernels are booted, and for what. */
import { expect, test } from 'vitest'
import type { Row } from './kernel.ts'
import { worksOf } from './works.ts'

const ROW = { arch: 'amd64', gate: true, demo: false, preflight: false, isSupported: true } as const
const OLD: Row = { ...ROW, name: 'old', demo: true }
const LATER: Row = { ...ROW, name: 'later' }
const OUTSIDE: Row = { ...ROW, name: 'outside', gate: false, preflight: true }
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

// SPDX-License-Identifier: Apache-2.0
/** Which kernels are booted, and for what. */
import { expect, test } from 'vitest'
import type { Row } from './kernel.ts'
import { worksOf } from './works.ts'

const ROW = { arch: 'amd64', soak: false, demo: false, preflight: false, isSupported: true } as const
const OLD: Row = { ...ROW, name: 'old', demo: true }
const LATER: Row = { ...ROW, name: 'later' }
const SOAK: Row = { ...ROW, name: 'soak', soak: true, preflight: true }
const NONE: Row = { ...ROW, name: 'none', preflight: true, isSupported: false }

test.each([
  ['nothing', {}, { old: ['tests'], later: ['tests'], soak: [], none: [] }],
  ['all', { all: true }, { old: ['demo', 'tests'], later: ['tests'], soak: ['tests', 'preflight'], none: ['preflight'] }],
  ['a name', { names: ['soak'] }, { old: [], later: [], soak: ['tests'], none: [] }],
  ['a name that could have the demo', { names: ['old'] }, { old: ['tests'], later: [], soak: [], none: [] }],
  ['one that is not supported', { names: ['none'] }, { old: [], later: [], soak: [], none: ['preflight'] }],
  ['the demo', { only: 'demo' }, { old: ['demo'], later: [], soak: [], none: [] }],
  ['the demo by name', { only: 'demo', names: ['later'] }, { old: [], later: ['demo'], soak: [], none: [] }],
  ['the preflight', { only: 'preflight' }, { old: [], later: [], soak: ['preflight'], none: ['preflight'] }],
] as const)('asked for %s', (_name, asked, wanted) => {
  const works = [OLD, LATER, SOAK, NONE].map((row) => [row.name, worksOf(row, { names: [], all: false, only: undefined, ...asked })])
  expect(Object.fromEntries(works)).toEqual(wanted)
})

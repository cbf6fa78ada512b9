// SPDX-License-Identifier: Apache-2.0
/** Which kernels are booted, and for what. */
import { expect, test } from 'vitest'
import type { Row } from './kernel.ts'
import { worksOf } from './works.ts'

const OLD: Row = { name: 'old', arch: 'amd64', soak: false, demo: true }
const LATER: Row = { name: 'later', arch: 'amd64', soak: false, demo: false }
const SOAK: Row = { name: 'soak', arch: 'amd64', soak: true, demo: false }

test.each([
  ['nothing', {}, { old: ['tests'], later: ['tests'], soak: [] }],
  ['all', { all: true }, { old: ['demo', 'tests'], later: ['tests'], soak: ['tests'] }],
  ['a name', { names: ['soak'] }, { old: [], later: [], soak: ['tests'] }],
  ['a name that could have the demo', { names: ['old'] }, { old: ['tests'], later: [], soak: [] }],
  ['the demo', { demo: true }, { old: ['demo'], later: [], soak: [] }],
  ['the demo by name', { demo: true, names: ['later'] }, { old: [], later: ['demo'], soak: [] }],
])('asked for %s', (_name, asked, wanted) => {
  const works = [OLD, LATER, SOAK].map((row) => [row.name, worksOf(row, { names: [], all: false, demo: false, ...asked })])
  expect(Object.fromEntries(works)).toEqual(wanted)
})

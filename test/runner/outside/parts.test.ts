// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { stagesIn } from '../../gate.ts'
import { isPart, PARTS, PARTS_PAGE, readParts, withRun } from './parts.ts'

const page = readFileSync(PARTS_PAGE, 'utf8')

test('the page has each part once', () => {
  expect(readParts(page).map(({ part }) => part)).toEqual(PARTS)
})

test('each part has a stage outside of the gate, and CONTRIBUTING.md and the Makefile name it', () => {
  const parts = new Set(stagesIn('build').flatMap(({ part }) => part ?? []))
  expect([...parts].sort()).toEqual([...PARTS].sort())
  for (const file of ['CONTRIBUTING.md', 'Makefile']) expect(readFileSync(file, 'utf8')).toContain(`PART=${PARTS.join('|')}`)
})

test('a run takes the place of the one before in the row of its part', () => {
  const run = { part: 'scale', date: '2026-12-01', commit: 'abc1234', result: '1 passed, 0 failed, 0 skipped in 9 s' } as const
  const after = readParts(withRun(page, run))
  expect(after.map(({ part }) => part)).toEqual(PARTS)
  expect(after.filter(({ part }) => part === 'scale')).toEqual([run])
  expect(after.filter(({ part }) => part !== 'scale')).toEqual(readParts(page).filter(({ part }) => part !== 'scale'))
  expect(withRun(withRun(page, run), run)).toBe(withRun(page, run))
})

test('a row with another number of columns, or of no part, is refused', () => {
  const [head = ''] = page.split('| soak |')
  expect(() => readParts(`${head}| soak | 2026-12-01 | fine |\n`)).toThrow('| soak | 2026-12-01 | fine |')
  expect(() => readParts(`${head}| toys | - | - | none |\n`)).toThrow('| toys |')
  expect(isPart('toys')).toBe(false)
})

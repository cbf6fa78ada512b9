// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LIST, MOST_UNSTEADY, readUnsteady, unsteadyRow } from './unsteady.ts'

/** Stages that run a command which has a second time. */
const COMMANDS = ['vm', 'demo']
const HEAD = '# Unsteady tests\n\n| name | first error | date |\n|---|---|---|\n'

test('the list names at most five, which are there, and each once', () => {
  const names = readUnsteady(readFileSync(LIST, 'utf8')).map(({ name }) => name)
  expect(names.length).toBeLessThanOrEqual(MOST_UNSTEADY)
  expect(names.filter((name) => !COMMANDS.includes(name) && !existsSync(name))).toEqual([])
  expect(names).toEqual([...new Set(names)])
})

test('a row that is printed is read as it was', () => {
  const rows = [
    { name: 'test/lab/x.test.ts', error: 'a | b: expected 1 to be 2', date: '2026-11-29' },
    { name: 'demo', error: 'FAILED one', date: '2026-12-01' },
  ]
  expect(readUnsteady(HEAD + rows.map((row) => `${unsteadyRow(row)}\n`).join(''))).toEqual(rows)
  expect(readUnsteady(HEAD)).toEqual([])
})

test('a row that cannot be read is no row less', () => {
  expect(() => readUnsteady(`${HEAD}| test/lab/x.test.ts | an error | today |\n`)).toThrow('test/lab/x.test.ts | an error')
})

test('a table of another form is not an empty one', () => {
  expect(() => readUnsteady(HEAD.replace('|---|---|---|', '| --- | --- | --- |'))).toThrow('there is no table')
})

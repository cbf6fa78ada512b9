// SPDX-License-Identifier: Apache-2.0
/** docs/upgrade.md lists what the code finds. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { findInstallation } from '#upgrade/found/find.ts'
import { METHODS, OLD_VARIANTS } from '#upgrade/found/found.ts'
import { REFUSALS, WARNINGS } from '#upgrade/found/refusals.ts'
import { facts, installed } from './installed.ts'

const page = readFileSync(join(packageRoot(), 'docs/upgrade.md'), 'utf8')

/** Cells of each row of the table whose head has `first` as its first cell. */
function rowsOf(first: string): readonly (readonly string[])[] {
  const table = page.split(`\n| ${first} |`)[1]?.split('\n\n')[0] ?? ''
  const cells = (line: string): readonly string[] => line.split('|').slice(1, -1)
  return table
    .split('\n')
    .slice(2)
    .map((line) => cells(line).map((cell) => cell.trim().replaceAll('`', '')))
}

test('each refusal is in the table, in order', () => {
  expect(rowsOf('an upgrade is not begun where').map(([when]) => when)).toEqual(REFUSALS.map(({ when }) => when))
})

test('each warning is in the table, in order', () => {
  expect(rowsOf('a warning is given where').map(([when]) => when)).toEqual(WARNINGS.map(({ when }) => when))
})

test('methods are those of the code', () => {
  expect(rowsOf('method').map(([method]) => method)).toEqual(METHODS)
})

test('variants are those of the code, each with what it goes on as', () => {
  const rows = rowsOf('variant').map(([variant = '', , target = '']) => [variant, target])
  const expected = OLD_VARIANTS.map((variant) => [variant, findInstallation(facts(installed('3.27', variant))).found?.target])
  expect(rows.toSorted()).toEqual(expected.toSorted())
})

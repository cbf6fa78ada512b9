// SPDX-License-Identifier: Apache-2.0
/** docs/upgrade-stored.md lists what the code reads. Layer: test. */
import { expect, test } from 'vitest'
import { STAGES, STORED_KINDS } from '#upgrade/stored/kinds.ts'
import { FOREIGN_NAMES } from '#upgrade/stored/read-object.ts'
import { OLD_DEFAULTS, RENAMED, STOPS } from '#upgrade/stored/rules/felix.ts'
import { OLD_LABELS } from '#upgrade/stored/rules/selectors.ts'
import { codesIn, pageText, rowsBelow } from '../pages.ts'

const page = pageText('upgrade-stored.md')

function rowsOf(heading: string): readonly (readonly string[])[] {
  return rowsBelow(page, `## ${heading}`)
}

function codeIn(cell: string | undefined): string {
  return codesIn(cell)[0] ?? ''
}

test('each kind is in the table of kinds, with its version and how it is read', () => {
  const rows = rowsOf('Kinds').map(([kind, since, how = '']) => [codeIn(kind), since, /carried|refused|left|addresses/.exec(how)?.[0]])
  expect(rows).toEqual(STORED_KINDS.map(({ kind, since, reading }) => [kind, since, reading.how]))
})

test('stages are in their order', () => {
  expect(page.replaceAll('\n', ' ')).toContain(`${STAGES.join(', ')}.`)
})

test('fields of FelixConfiguration are those of the rules', () => {
  const pairs = rowsOf('FelixConfiguration').map(([old, now]) => [codeIn(old), codeIn(now)])
  const expected = [
    ...RENAMED.map(({ old, now }) => [old, now]),
    ...Object.entries(OLD_DEFAULTS).map(([name, value]) => [name, JSON.stringify(value).replaceAll('"', '')]),
  ]
  expect(pairs).toEqual(expected)
  expect(page.replaceAll('\n', ' ')).toContain(`${STOPS.map((name) => `\`${name}\``).join(', ')}.`)
})

test('labels and names of policies are those of the rules', () => {
  const labels = rowsOf('Policies').map(([old, now]) => [codeIn(old), codeIn(now)])
  const expected = OLD_LABELS.map(({ old, now, isPrefix }) => (isPrefix ? [`${old}…`, `${now}…`] : [old, now]))
  expect(labels).toEqual(expect.arrayContaining(expected))
  expect(FOREIGN_NAMES.filter(({ prefix }) => !page.includes(`\`${prefix}\``))).toEqual([])
})

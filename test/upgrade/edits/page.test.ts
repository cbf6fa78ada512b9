// SPDX-License-Identifier: Apache-2.0
/** docs/upgrade-edits.md lists what the code does with edits. Layer: test. */
import { expect, test } from 'vitest'
import { TABLES } from '#upgrade/edits/destinations.ts'
import { INSTALLATION_RULES } from '#upgrade/edits/installation/rules.ts'
import { SINCE } from '#upgrade/edits/pristine/changes.ts'
import { OWN_TABLES } from '#upgrade/edits/own/rules.ts'
import type { EditRule } from '#upgrade/edits/rule.ts'
import { metadataRules, podRules } from '#upgrade/edits/rules/pods.ts'
import { codesIn, pageText, rowsBelow } from '../pages.ts'

const page = pageText('upgrade-edits.md')

function fieldsBelow(heading: string): readonly (readonly string[])[] {
  return rowsBelow(page, heading).map(([fields]) => codesIn(fields))
}

function fieldsOf(rules: readonly EditRule[]): readonly (readonly string[])[] {
  return rules.map(({ fields }) => fields)
}

/** Tables of rules that several objects have stand by themselves. */
const SHARED = fieldsOf([...podRules('nodePods'), ...metadataRules]).map(String)

test.each(TABLES.map(([what, , rules]) => [what, rules] as const).filter(([, rules]) => rules[0]?.fields[0] !== '*'))(
  '%s: each field is in its table, in the order in which rules are asked',
  (what, rules) => {
    const isOwn = (fields: readonly string[]): boolean => what === 'Config map' || !SHARED.includes(String(fields))
    expect(fieldsBelow(`### ${what}`)).toEqual(fieldsOf(rules).filter(isOwn))
  },
)

test.each(OWN_TABLES.filter(([what]) => what.endsWith('of ours')))('%s: each field is in its table as well', (what, _, rules) => {
  expect(fieldsBelow(`### ${what}`)).toEqual(fieldsOf(rules).filter((fields) => !SHARED.includes(String(fields))))
})

test('fields that several objects have are in tables of their own', () => {
  expect(fieldsBelow('### Pods')).toEqual(fieldsOf(podRules('nodePods')))
  expect(fieldsOf(podRules('controllerPods'))).toEqual(fieldsOf(podRules('nodePods')))
  expect(fieldsBelow('### Every object')).toEqual(fieldsOf(metadataRules))
})

test('each field of an Installation is in its table', () => {
  expect(fieldsBelow('## Installations of the operator and of the chart')).toEqual(fieldsOf(INSTALLATION_RULES))
})

test('each change between versions is in the table of versions', () => {
  const rows = rowsBelow(page, '## Versions', '| 3.').map(([since, change]) => [codesIn(change)[0], since])
  expect(rows).toEqual(Object.entries(SINCE).map(([change, minor]) => [change, `3.${minor}`]))
})

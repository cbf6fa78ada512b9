// SPDX-License-Identifier: Apache-2.0
/** Reasons of conditions and events: the tables that docs/troubleshooting.md is made from have those of the code, and
 * no other. Layer: test. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { REASONS as AGENT } from '#agent/status/reasons.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { REASONS as CONTROLLERS } from '#controllers/config/reasons.ts'
import { REASONS as OPERATOR } from '#operator/status/reasons.ts'

function sourcesOf(...patterns: readonly string[]): string {
  const files = globSync(patterns, { cwd: packageRoot(), exclude: (path) => path.endsWith('reasons.ts') })
  return files.map((file) => readFileSync(join(packageRoot(), file), 'utf8')).join('\n')
}

/** In conditions, events and their types: `reason: 'One' | 'Other'`. */
function given(source: string): readonly string[] {
  const unions = [...source.matchAll(/\breason: ('[A-Z]\w*'(?: \| '[A-Z]\w*')*)/g)].map(([, union = '']) => union)
  return [...new Set([...unions.join(' ').matchAll(/'(\w+)'/g)].map(([, name = '']) => name))].sort()
}

test.each([
  ['the operator', OPERATOR, ['operator/**/*.ts', 'lib/control/{rollout,pod-trouble}.ts']],
  ['controllers', CONTROLLERS, ['controllers/**/*.ts']],
])('the table of %s has the reasons of its code', (_, table, patterns) => {
  expect(given(sourcesOf(...patterns)).length).toBeGreaterThan(5)
  expect(Object.keys(table).sort()).toEqual(given(sourcesOf(...patterns)))
})

test('the table of agents has what they write, and no other', () => {
  const source = sourcesOf('agent/status/**/*.ts')
  expect(Object.keys(AGENT)).toEqual(expect.arrayContaining([...given(source)]))
  // others are of the table by their type
  expect(Object.keys(AGENT).filter((reason) => !source.includes(`'${reason}'`))).toEqual([])
})

test('a reason that is no success says what to do', () => {
  const fine = [
    ...['Accepted', 'AllReady', 'Installed', 'KubeProxyServes', 'KubeProxyStopped', 'NetplaneIsUp', 'Passed', 'Programmed'],
    ...['Removed', 'Serving', 'Synced'],
  ]
  const silent = [AGENT, CONTROLLERS, OPERATOR].flatMap((table) =>
    Object.entries(table).flatMap(([reason, { remedy }]) => (remedy === '' ? [reason] : [])),
  )
  expect(silent.sort()).toEqual(fine)
})

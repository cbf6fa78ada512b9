// SPDX-License-Identifier: Apache-2.0
/** What is outside of the gate is what CONTRIBUTING.md says. Layer: test. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SLOW, stagesIn } from '../../gate.ts'

test('CONTRIBUTING.md names each stage and each file that is outside of the gate', () => {
  const stages = stagesIn('build').flatMap(({ name, part }) => (part === undefined ? [] : [name]))
  expect(stages).toContain('soak')
  const page = readFileSync('CONTRIBUTING.md', 'utf8')
  const [table = ''] = /\| outside of the gate [^]*?\n\n/.exec(page) ?? []
  const named = [...table.matchAll(/^\| `([^`]+)`/gm)].map((match) => match[1])
  // these two stages are their files
  const others = stages.filter((stage) => !['measured', 'long'].includes(stage))
  expect(named.sort()).toEqual([...others, ...SLOW.bench, ...SLOW.long].sort())
})

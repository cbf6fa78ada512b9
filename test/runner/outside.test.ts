// SPDX-License-Identifier: Apache-2.0
/** What is outside of the gate is what CONTRIBUTING.md says. Layer: test. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('CONTRIBUTING.md names each stage and each file that is outside of the gate', () => {
  const run = readFileSync('test/run.ts', 'utf8')
  const stages = [...run.matchAll(/name: '([\w-]+)',(?:(?!name: ')[^])*?isOutside: true/g)].map((match) => match[1] ?? '')
  const files = [...(/const SLOW = \[(.*?)\]/s.exec(run)?.[1] ?? '').matchAll(/'(.*?)'/g)].map(
    (match) => `test/lab/${match[1] ?? ''}.test.ts`,
  )
  expect(stages).toContain('soak')
  expect(files).toContain('test/lab/image-arm64.test.ts')
  const page = readFileSync('CONTRIBUTING.md', 'utf8')
  const [table = ''] = /\| outside of the gate [^]*?\n\n/.exec(page) ?? []
  const named = [...table.matchAll(/^\| `([^`]+)`/gm)].map((match) => match[1])
  // the stage "slow" is its files
  expect(named.sort()).toEqual([...stages.filter((stage) => stage !== 'slow'), ...files].sort())
})

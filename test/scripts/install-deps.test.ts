// SPDX-License-Identifier: Apache-2.0
/** The groups of Debian packages, beside the places that ask for them. Layer: test. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const SCRIPT = readFileSync('scripts/install-deps.sh', 'utf8')
const groups = [...SCRIPT.matchAll(/^ {2}\[(\w+)\]=/gm)].map((match) => match[1])

test('every group that a file asks for is one of the script', () => {
  expect(groups.length).toBeGreaterThan(5)
  const askers = ['Makefile', 'Dockerfile', 'test/kernel/vm/demo.ts'].map((file) => readFileSync(file, 'utf8'))
  const asked = askers.flatMap((text) =>
    [...text.matchAll(/scripts\/install-deps\.sh((?: +[a-z0-9]+)+)/g)].flatMap((match) => (match[1] ?? '').trim().split(/ +/)),
  )
  expect(asked.length).toBeGreaterThan(5)
  for (const group of new Set(asked)) expect([...groups, 'all']).toContain(group)
})

test.each(['test', 'test-all'])('`make %s` installs every group before its first stage', (target) => {
  const lines = execFileSync('make', ['--dry-run', target], { encoding: 'utf8', env: { PATH: process.env['PATH'] } }).split('\n')
  const [installs, runs] = [/install-deps\.sh all$/, /test\/run\.ts/].map((words) => lines.findIndex((line) => words.test(line)))
  expect(installs).toBeGreaterThanOrEqual(0)
  expect(runs).toBeGreaterThan(installs ?? 0)
})

// SPDX-License-Identifier: Apache-2.0
/** The groups of Debian packages, beside the places that ask for them. Layer: test. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const SCRIPT = readFileSync('scripts/install-deps.sh', 'utf8')
const MAKEFILE = readFileSync('Makefile', 'utf8')
const groups = [...SCRIPT.matchAll(/^ {2}\[(\w+)\]=/gm)].map((match) => match[1])

/** The commands of a target of the Makefile, one a line. */
function recipe(target: string): readonly string[] {
  const lines = MAKEFILE.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`${target}:`))
  const rest = lines.slice(start + 1)
  return rest.slice(
    0,
    rest.findIndex((line) => !line.startsWith('\t')),
  )
}

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
  const [first = '', second = ''] = recipe(target)
  expect(first).toMatch(/install-deps\.sh all$/)
  expect(second).toContain('test/run.ts')
})

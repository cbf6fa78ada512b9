// SPDX-License-Identifier: Apache-2.0
/** Every test of upstream's is one of ours, by its name, or is in the list of those that are not, with the reason.
 * Layer: test. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { at } from '../lab/raw.ts'

const root = packageRoot()

/** "suite > name" of each line. */
function upstream(): string[] {
  const names: string[] = []
  let suite = ''
  for (const line of readFileSync(join(root, 'test/lab/upstream/upstream.txt'), 'utf8').split('\n')) {
    if (line.startsWith('[')) suite = line
    else if (/^[DN] /.test(line)) names.push(`${suite} > ${line.slice(2)}`)
  }
  return names
}

function documented(): { readonly name: string; readonly reason: string }[] {
  const page = readFileSync(join(root, 'docs/upstream-tests.md'), 'utf8')
  return [...page.matchAll(/^\| (\[sig-network\].*?) \| (.*?) \| (.*?) \|$/gm)].map(([, suite, name, reason = '']) => ({
    name: `${suite ?? ''} > ${name ?? ''}`,
    reason,
  }))
}

/** As vitest itself lists them, those that the gate leaves out as well: nothing of theirs is run. */
function ours(): string[] {
  const vitest = [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'list',
    'test/lab/upstream',
    '--project',
    'lab',
    '--no-static-parse',
    '--json',
  ]
  const env = { ...process.env, MATRIX: 'whole' }
  const text = execFileSync(process.execPath, ['--conditions=source', ...vitest], { cwd: root, encoding: 'utf8', env })
  const list: unknown = JSON.parse(text)
  return (Array.isArray(list) ? list : []).map((entry) => String(at(entry, 'name'))).filter((name) => name.startsWith('[sig-network]'))
}

describe("upstream's tests", () => {
  const tested = ours()
  const listed = documented()

  test('are tests of the lab or listed, no more and no less', () => {
    expect([...tested, ...listed.map(({ name }) => name)].sort()).toEqual(upstream().sort())
  })

  test('have a reason where they are listed', () => {
    expect(listed.filter(({ reason }) => reason === '')).toEqual([])
  })
})

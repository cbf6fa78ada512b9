// SPDX-License-Identifier: Apache-2.0
/** What the file of the image is made from, as make knows it. Layer: test. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'

const cwd = packageRoot()

/** The files that make compares with it. */
function madeFrom(target: string): ReadonlySet<string> {
  const database = spawnSync('make', ['--print-data-base', '--question', target], { cwd, encoding: 'utf8', maxBuffer: 64 << 20 }).stdout
  const line = database.split('\n').find((one) => one.startsWith(`${target}: `)) ?? ''
  return new Set(line.split(/\s+/).slice(1))
}

/** What the script copies: "dist/$folder", "{package.json,LICENSE}". */
function copied(): readonly string[] {
  const script = readFileSync(join(cwd, 'scripts/image/rootfs'), 'utf8')
  const words = [...script.matchAll(/\$repository"?\/([^\s"}]*\{[^}]*\}|[^\s"}]+)/g)].map(([, word = '']) => word)
  const own = [...script.matchAll(/\$here\/([\w-]+)/g)].map(([, name = '']) => `scripts/image/${name}`)
  return [...words.flatMap((word) => (word.startsWith('{') ? word.slice(1, -1).split(',') : [word])), ...own]
}

test('the image is made again when a file has changed that goes into it', () => {
  const known = madeFrom('build/netplane.tar')
  const files = copied().flatMap((name) =>
    name.startsWith('dist/') ? ['dist/.built'] : name.includes('*') ? globSync(name, { cwd }) : [name],
  )
  expect(files.length).toBeGreaterThan(10)
  expect(files.filter((name) => !known.has(name))).toEqual([])
})

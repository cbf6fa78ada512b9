// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'

const BUILT = join(packageRoot(), 'dist/agent')

function run(file: string, args: readonly string[]): string {
  const [program = '', ...before] = nodeCommand(join(packageRoot(), file))
  return execFileSync(program, [...before, ...args], { encoding: 'utf8' })
}

test('the built agent is a few files that import no others', () => {
  const parts = readdirSync(join(BUILT, 'parts'))
  const imported = [
    readFileSync(join(BUILT, 'main.js'), 'utf8'),
    ...parts.map((part) => readFileSync(join(BUILT, 'parts', part), 'utf8')),
  ].flatMap((text) =>
    [...text.matchAll(/(?:^|[\s(])(?:from|import)[\s(]*"(\.[^"]+)"/g)].map(([, path = '']) => path.slice(path.lastIndexOf('/') + 1)),
  )
  expect(imported.length).toBeGreaterThan(parts.length)
  expect(imported.filter((name) => !parts.includes(name))).toEqual([])
})

test('the built agent prints what the agent prints from its sources', () => {
  const args = ['--print-desired', '--resources', join(packageRoot(), 'demo/manifests'), '--node', 'node-a']
  expect(run('dist/agent/main.js', args)).toBe(run('agent/main.ts', args))
})

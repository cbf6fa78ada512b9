// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { readdirSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import config from '../../vitest.config.ts'
import { kindOf } from './kinds.ts'

/** The project whose globs take the file in. */
function projectOf(path: string): string | undefined {
  const projects = (config.test?.projects ?? []).flatMap((project) =>
    typeof project === 'object' && 'test' in project ? [project.test] : [],
  )
  const takes = (globs: readonly string[] | undefined): boolean => (globs ?? []).some((glob) => matchesGlob(path, glob))
  const found = projects.find((project) => takes(project.include) && !takes(project.exclude))?.name
  return typeof found === 'string' ? found : undefined
}

test('the kind of every test file is the one whose project runs it', () => {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name}`)
    .filter((name) => name.endsWith('.test.ts') && !name.startsWith('test/cluster/long/'))
  expect(files.length).toBeGreaterThan(200)
  for (const file of files) expect([file, kindOf(file).project]).toEqual([file, projectOf(file)])
})

test('a folder has the kind of its files, however it is written', () => {
  expect(kindOf('test/kernel').project).toBe('kernel')
  expect(kindOf('./test/lab/').project).toBe('lab')
  expect(kindOf('test/lib/kube').project).toBe('unit')
  expect(kindOf('test/kernel/packets.test.ts').targets).toEqual(['bpf', 'native'])
})

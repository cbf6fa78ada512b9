// SPDX-License-Identifier: Apache-2.0
/** From which clones the version before this one is built, with real clones. Layer: test. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { previousVersion } from '../../../testkit/previous/build.ts'

let folder: string
let commit: string

/** A repository of two commits, the second of which names the first, and a cache directory. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-previous-'))
  vi.stubEnv('NETPLANE_CACHE', join(folder, 'cache'))
  const origin = join(folder, 'origin')
  mkdirSync(join(origin, 'test/upgrade'), { recursive: true })
  git(origin, 'init', '--quiet')
  writeFileSync(join(origin, 'package-lock.json'), '{}\n')
  writeFileSync(join(origin, 'Makefile'), 'all:\n\ttouch built\n')
  commitAll(origin)
  commit = git(origin, 'rev-parse', 'HEAD')
  writeFileSync(join(origin, 'test/upgrade/previous'), `${commit}\n`)
  writeFileSync(join(origin, 'package-lock.json'), '{"other": true}\n')
  commitAll(origin)
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

function git(where: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-C', where, '-c', 'user.name=n', '-c', 'user.email=n@example.org', ...args], { encoding: 'utf8' }).trim()
}

function commitAll(where: string): void {
  git(where, 'add', '--all')
  git(where, 'commit', '--quiet', '--message', 'one')
}

function previousFolder(): string {
  return join(folder, 'cache', `previous-${commit.slice(0, 12)}-${process.arch}`)
}

function clone(...options: readonly string[]): string {
  const into = join(folder, `clone${options.length}`)
  git(folder, 'clone', '--quiet', ...options, `file://${folder}/origin`, into)
  return into
}

test('a whole clone builds it once', async () => {
  const root = clone()
  const { commit: built, agentCommand } = await previousVersion(root)
  expect([built, dirname(dirname(dirname(agentCommand.at(-1) ?? '')))]).toEqual([commit, previousFolder()])
  rmSync(join(previousFolder(), 'built'))
  await previousVersion(root)
  expect(existsSync(join(previousFolder(), 'built'))).toBe(false)
})

test('a shallow clone is an error that says what to do, with an empty cache and with one that has it', async () => {
  const shallow = clone('--depth', '1')
  const refused = /shallow.*git fetch --unshallow/
  await expect(previousVersion(shallow)).rejects.toThrow(refused)
  await previousVersion(clone())
  await expect(previousVersion(shallow)).rejects.toThrow(refused)
})

// SPDX-License-Identifier: Apache-2.0
/** The version before this one, which nodes have that are upgraded: built once from the clone's history, and kept in
 * the cache directory. Layer: testkit. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '#lib/base/errors.ts'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'
import { cached } from '../base/cache.ts'
import { command } from '../base/command.ts'

/** Names the commit. */
const PREVIOUS = 'test/upgrade/previous'
const LOCK = 'package-lock.json'
/** Two busy cores need three minutes. */
const BUILD_MS = 15 * 60_000

export interface PreviousVersion {
  readonly commit: string
  /** program and first arguments of its agent */
  readonly agentCommand: readonly string[]
}

/** Builds it when it is not there yet, a minute or two. Throws ConfigError when the clone is shallow, though it may
 * have been built before: what the next machine cannot do is not to work by luck on this one. */
export async function previousVersion(root = packageRoot()): Promise<PreviousVersion> {
  const commit = await commitOf(root)
  const folder = await cached(`previous-${commit.slice(0, 12)}-${process.arch}`, (half) => build(root, commit, half))
  return { commit, agentCommand: nodeCommand(join(folder, 'dist/agent/main.js')) }
}

/** Its sources as they were, below `into`: nothing is built. Throws ConfigError as above. */
export async function previousSources(into: string, root = packageRoot()): Promise<void> {
  await extract(root, await commitOf(root), into)
}

async function commitOf(root: string): Promise<string> {
  const shallow = await command('git', ['-C', root, 'rev-parse', '--is-shallow-repository'])
  if (shallow.trim() !== 'false')
    throw new ConfigError(PREVIOUS, 'the clone is shallow and has no history to build it from: git fetch --unshallow')
  return readFileSync(join(root, PREVIOUS), 'utf8').trim()
}

async function build(root: string, commit: string, into: string): Promise<void> {
  await extract(root, commit, into)
  // as npm would fetch them
  if (isSame(join(root, LOCK), join(into, LOCK))) await command('cp', ['-a', join(root, 'node_modules'), into])
  await command('make', ['--no-print-directory', '-C', into, 'all'], { timeout: BUILD_MS })
}

async function extract(root: string, commit: string, into: string): Promise<void> {
  const tar = join(into, 'previous.tar')
  await command('git', ['-C', root, 'archive', '--output', tar, commit])
  await command('tar', ['-x', '-f', tar, '-C', into])
  rmSync(tar)
}

function isSame(one: string, other: string): boolean {
  return readFileSync(one, 'utf8') === readFileSync(other, 'utf8')
}

// SPDX-License-Identifier: Apache-2.0
/** The image of what is built here: made by the first test that wants it, and again when what goes into it has
 * changed. Layer: testkit. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { command } from './command.ts'

const BUILD_MS = 600_000
const ARCHIVE = 'build/netplane.tar'

/** As a file that container runtimes import. */
export async function imageArchive(): Promise<string> {
  await withImage(`make --no-print-directory -s ${ARCHIVE}`)
  return join(packageRoot(), ARCHIVE)
}

/** Its root file system as the folder `target`, which must not exist: the caller's own. */
export async function imageRoot(target: string): Promise<void> {
  await withImage(`make --no-print-directory -s ${ARCHIVE} && cp -a build/image "$0"`, target)
}

/** Runs a script of the shell in the package's folder. Two at once wait for each other: the second finds it made. */
async function withImage(script: string, ...args: readonly string[]): Promise<void> {
  mkdirSync(join(packageRoot(), 'build'), { recursive: true })
  await command('flock', ['build/image.lock', 'sh', '-ec', script, ...args], { cwd: packageRoot(), timeout: BUILD_MS })
}

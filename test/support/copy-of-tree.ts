// SPDX-License-Identifier: Apache-2.0
/** A copy of the repository in which a tool may break the code. Layer: test. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The folder of a new copy: the files of the last commit, and what is built in `root`. The caller removes it. */
export function copyOfTree(root: string, name: string): string {
  const copy = mkdtempSync(join(tmpdir(), `netplane-${name}-`))
  execFileSync('git', ['clone', '--quiet', '--shared', root, copy])
  // no links: an npm that is asked to install would take away what they lead to
  for (const built of ['node_modules', 'build', 'dist'])
    cpSync(join(root, built), join(copy, built), { recursive: true, verbatimSymlinks: true })
  const now = new Date()
  utimesSync(join(copy, 'node_modules/.package-lock.json'), now, now)
  return copy
}

/** Whether make builds the targets there. */
export function makeIn(copy: string, ...targets: readonly string[]): boolean {
  return spawnSync('make', ['--silent', '--no-print-directory', ...targets], { cwd: copy }).status === 0
}

// SPDX-License-Identifier: Apache-2.0
/** On what was measured. Layer: bench. */
import { execFileSync } from 'node:child_process'
import { cpus, release } from 'node:os'
import { packageRoot } from '#lib/base/os/package.ts'
import type { Facts } from './results.ts'

export function readFacts(): Facts {
  const all = cpus()
  return { kernel: release(), cores: all.length, cpu: all[0]?.model.trim() ?? 'unknown', date: new Date().toISOString(), commit: commit() }
}

/** With a "+" when the tree is not as committed; "unknown" outside a repository. */
function commit(): string {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['--no-optional-locks', '-C', packageRoot(), ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '+')
  } catch {
    return 'unknown'
  }
}

// SPDX-License-Identifier: Apache-2.0
/** The built programs and their packages for a guest. Layer: test. */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Entry } from './entry.ts'

/** Only a kubeconfig needs it, and it is as large as all the others four times. */
const UNUSED = ['node_modules/@kubernetes/client-node']

/** Files and folders of the repository, and what npm has for them, below netplane/. */
export function builtEntries(top: string, paths: readonly string[]): Entry[] {
  return [...paths, ...packagesOf(top)].flatMap((path) => filesBelow(top, path))
}

/** Packages that programs need when they run, by package-lock.json. */
function packagesOf(top: string): string[] {
  const lock: unknown = JSON.parse(readFileSync(join(top, 'package-lock.json'), 'utf8'))
  if (typeof lock !== 'object' || lock === null || !('packages' in lock) || typeof lock.packages !== 'object' || lock.packages === null)
    throw new Error('package-lock.json has no packages')
  return Object.entries(lock.packages)
    .filter(([path, row]: [string, unknown]) => path !== '' && isWanted(path) && isForRunning(row))
    .map(([path]) => path)
    .filter((path) => existsSync(join(top, path)))
}

function isWanted(path: string): boolean {
  return ![...UNUSED, 'node_modules/node-linux-', 'node_modules/@types/'].some((prefix) => path.startsWith(prefix))
}

function isForRunning(row: unknown): boolean {
  return typeof row === 'object' && row !== null && !('dev' in row) && !('devOptional' in row)
}

function filesBelow(top: string, path: string): Entry[] {
  const file = (name: string): Entry => ({ kind: 'file', path: `netplane/${name}`, source: join(top, name), mode: 0o644 })
  if (statSync(join(top, path)).isFile()) return [file(path)]
  return readdirSync(join(top, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(map|d\.[mc]?ts)$/.test(entry.name))
    .map((entry) => file(relative(top, join(entry.parentPath, entry.name))))
}

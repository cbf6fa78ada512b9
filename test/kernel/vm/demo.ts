// SPDX-License-Identifier: Apache-2.0
/** What a guest needs beside its root to run the demo: the built programs, their packages, and this machine's tools.
 * Layer: test. */
import { existsSync, readFileSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Entry } from './root/entry.ts'

/** Where this machine has them, and the guest as well: scripts and the agent ask for them by name. */
const TOOLS = ['dash', 'ip', 'tc', 'nft', 'tcpdump', 'ping', 'nsenter', 'unshare', 'mount', 'umount', 'sed', 'find', 'ls', 'sort']
const PROGRAM_DIRS = ['/usr/bin', '/usr/sbin', '/bin', '/sbin']
/** What the demo starts: agents included. */
const BUILT = ['package.json', 'dist/agent', 'dist/demo', 'dist/lab', 'dist/lib', 'dist/native', 'demo/manifests']
/** Only a kubeconfig needs it, and it is as large as all the others four times. */
const UNUSED = ['node_modules/@kubernetes/client-node']

/** Files of this machine for the guest's bin/. */
export function demoTools(): ReadonlyMap<string, string> {
  return new Map(TOOLS.map((name) => [name === 'dash' ? 'sh' : name, toolPath(name)]))
}

/** The repository below netplane/, and whom tcpdump becomes once it listens. */
export function demoEntries(top: string): Entry[] {
  const passwd = ['root:x:0:0::/:/bin/sh', 'tcpdump:x:100:100::/:/bin/sh', ''].join('\n')
  return [
    ...[...BUILT, ...packagesOf(top)].flatMap((path) => filesBelow(top, path)),
    { kind: 'bytes', path: 'etc/passwd', content: Buffer.from(passwd), mode: 0o644 },
  ]
}

function toolPath(name: string): string {
  const found = PROGRAM_DIRS.map((dir) => join(dir, name)).find((path) => existsSync(path))
  if (found === undefined) throw new Error(`no ${name} in ${PROGRAM_DIRS.join(', ')}: run scripts/install-deps.sh demo`)
  return realpathSync(found)
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

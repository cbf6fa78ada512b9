// SPDX-License-Identifier: Apache-2.0
/** What a guest needs beside its root to run the demo: the built programs, their packages, and this machine's tools.
 * Layer: test. */
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { builtEntries } from './root/built.ts'
import type { Entry } from './root/entry.ts'

/** Where this machine has them, and the guest as well: scripts and the agent ask for them by name. */
const TOOLS = ['dash', 'ip', 'tc', 'nft', 'tcpdump', 'ping', 'nsenter', 'unshare', 'mount', 'umount', 'sed', 'find', 'ls', 'sort']
const PROGRAM_DIRS = ['/usr/bin', '/usr/sbin', '/bin', '/sbin']
/** What the demo starts: agents included. */
const BUILT = ['package.json', 'dist/agent', 'dist/demo', 'dist/lab', 'dist/lib', 'dist/native', 'demo/manifests']

/** Files of this machine for the guest's bin/. */
export function demoTools(): ReadonlyMap<string, string> {
  return new Map(TOOLS.map((name) => [name === 'dash' ? 'sh' : name, toolPath(name)]))
}

/** The repository below netplane/, and whom tcpdump becomes once it listens. */
export function demoEntries(top: string): Entry[] {
  const passwd = ['root:x:0:0::/:/bin/sh', 'tcpdump:x:100:100::/:/bin/sh', ''].join('\n')
  return [...builtEntries(top, BUILT), { kind: 'bytes', path: 'etc/passwd', content: Buffer.from(passwd), mode: 0o644 }]
}

function toolPath(name: string): string {
  const found = PROGRAM_DIRS.map((dir) => join(dir, name)).find((path) => existsSync(path))
  if (found === undefined) throw new Error(`no ${name} in ${PROGRAM_DIRS.join(', ')}: run scripts/install-deps.sh demo`)
  return realpathSync(found)
}

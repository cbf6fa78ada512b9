// SPDX-License-Identifier: Apache-2.0
/** What a guest needs beside its root to run containers of the preflight: the agent as the image has it.
 * Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtEntries } from './root/built.ts'
import type { Entry } from './root/entry.ts'

const BUILT = ['package.json', 'dist/agent', 'dist/lib', 'dist/native']

/** With the program of the image's path, by the image's own words. */
export function imageEntries(top: string): Entry[] {
  const [, form] = /printf '(#!.*)' "\$\{program#/.exec(readFileSync(join(top, 'scripts/image/rootfs'), 'utf8')) ?? []
  if (form === undefined) throw new Error('scripts/image/rootfs makes no programs')
  const program = form.replace('%s', 'agent').replaceAll('\\n', '\n')
  return [
    ...builtEntries(top, BUILT),
    { kind: 'link', path: 'opt/netplane', target: '/netplane' },
    { kind: 'bytes', path: 'bin/netplane-agent', content: Buffer.from(program), mode: 0o755 },
  ]
}

// SPDX-License-Identifier: Apache-2.0
/** Our own package: where it lies, which version it is, and how one of its files is run. Layer: lib/base. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { InternalError } from '../errors.ts'

/** The folder of package.json, whether this file runs as source, compiled or bundled. Throws InternalError when
 * there is none above it. */
export function packageRoot(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new InternalError('the package.json of netplane was not found above the program')
  }
}

/** "0.1.0" */
export function packageVersion(): string {
  const parsed: unknown = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? parsed.version : undefined
  return typeof version === 'string' ? version : 'unknown'
}

/** What is garbage in the old generation stays until the heap is as large as this. */
export const INITIAL_HEAP_MB = 256

/** V8's options in all of our processes. A young generation that stays in the processor's cache: reading 10,000
 * services takes no more time for it, and 50 MB less than with the 32 MB that V8 would take. Nor does it shrink to
 * 1 MB when there is little to do: it would be collected with every tenth change, and what has just come would grow
 * old by that. One thread collects it: waking others takes longer than there is work. The old one is marked in one
 * go, tens of ms and seldom: bit by bit, beside what still grows, takes a twentieth more CPU and 8 MB. And not before
 * it has grown to what 10,000 services take: all that a start makes stays, and marking it is a tenth of the start. */
export const NODE_FLAGS: readonly string[] = [
  '--max-semi-space-size=8',
  '--min-semi-space-size=4',
  '--no-parallel-scavenge',
  '--no-incremental-marking',
  `--initial-heap-size=${INITIAL_HEAP_MB}`,
]

/** Command line that runs a file of ours, source or built, with the Node that runs us. */
export function nodeCommand(file: string): string[] {
  return [process.execPath, ...NODE_FLAGS, ...(file.endsWith('.ts') ? ['--conditions=source'] : []), file]
}

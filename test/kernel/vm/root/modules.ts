// SPDX-License-Identifier: Apache-2.0
/** Finds kernel modules and the order to load them in, from the modules' own `depends=` words: works on any tree,
 * compressed or not, with or without depmod's files. Layer: test. */
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'

export interface Module {
  readonly name: string
  /** the uncompressed object */
  readonly bytes: Buffer
}

const SUFFIX = /\.ko(\.xz|\.gz|\.zst)?$/

/** The wanted modules and all they need, each after what it needs. Names the tree does not have are left out: they
 * are built in, or the kernel lacks them, which the payload will notice. */
export function modulesInOrder(dir: string, wanted: readonly string[]): Module[] {
  const files = new Map<string, string>()
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && SUFFIX.test(entry.name)) files.set(moduleName(entry.name), join(entry.parentPath, entry.name))
  }
  const done = new Set<string>()
  const out: Module[] = []
  const visit = (name: string): void => {
    const file = files.get(name)
    if (file === undefined || done.has(name)) return
    done.add(name)
    const bytes = readModule(file)
    for (const need of needsOf(bytes)) visit(need)
    out.push({ name, bytes })
  }
  for (const name of wanted) visit(moduleName(name))
  return out
}

function moduleName(file: string): string {
  return basename(file).replace(SUFFIX, '').replaceAll('-', '_')
}

function readModule(file: string): Buffer {
  const bytes = readFileSync(file)
  if (file.endsWith('.gz')) return gunzipSync(bytes)
  if (file.endsWith('.zst')) return zstdDecompressSync(bytes)
  if (file.endsWith('.xz')) return execFileSync('xz', ['-dc'], { input: bytes, maxBuffer: 256 << 20 })
  return bytes
}

/** `depends` are hard needs; a `softdep … pre:` is one in practice (libcrc32c finds no algorithm without it). */
function needsOf(bytes: Buffer): string[] {
  const needs: string[] = []
  for (const value of wordsOf(bytes, 'softdep=')) {
    const before = /\bpre:\s*(.*?)(?:\bpost:|$)/.exec(value)?.[1] ?? ''
    needs.push(...before.split(/\s+/))
  }
  for (const value of wordsOf(bytes, 'depends=')) needs.push(...value.split(','))
  return needs.filter((name) => name !== '').map(moduleName)
}

/** Values of one key in the NUL-separated .modinfo section, wherever that lies in the file. */
function wordsOf(bytes: Buffer, key: string): string[] {
  const needle = Buffer.from(`\0${key}`, 'latin1')
  const out: string[] = []
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) {
    const start = at + needle.length
    out.push(bytes.toString('latin1', start, bytes.indexOf(0, start)))
  }
  return out
}

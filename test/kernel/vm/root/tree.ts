// SPDX-License-Identifier: Apache-2.0
/** Writes a list of entries as a directory. Layer: test. */
import { chmodSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from './entry.ts'

/** Device nodes are left out: a guest that shares the directory mounts devtmpfs in it. */
export function writeTree(entries: readonly Entry[], dir: string): void {
  for (const entry of entries) writeEntry(entry, join(dir, entry.path))
}

function writeEntry(entry: Entry, path: string): void {
  switch (entry.kind) {
    case 'directory':
      mkdirSync(path)
      return
    case 'file':
      copyFileSync(entry.source, path)
      chmodSync(path, entry.mode)
      return
    case 'bytes':
      writeFileSync(path, entry.content, { mode: entry.mode })
      return
    case 'link':
      symlinkSync(entry.target, path)
      return
    case 'device':
      return
  }
}

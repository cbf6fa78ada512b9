// SPDX-License-Identifier: Apache-2.0
/** What manifest files a directory and its subdirectories hold. Layer: lib/manifests. */
import { readdirSync, statSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { join } from 'node:path'
import { errorCode, errorText } from '../base/errors.ts'
import { isManifestName } from './read.ts'

export interface Tree {
  /** paths relative to the root, "" for the root itself → identity */
  readonly directories: ReadonlyMap<string, string>
  /** relative paths of manifest files */
  readonly files: readonly string[]
  /** relative paths of what is there and cannot be looked at → why: links in a circle, other people's folders */
  readonly unreadable: ReadonlyMap<string, string>
}

/** Deep enough for any sensible layout. */
const DEEPEST = 16

/** Throws when the root cannot be read. Hidden names are not looked at. */
export function listTree(root: string): Tree {
  const directories = new Map<string, string>()
  const files: string[] = []
  const unreadable = new Map<string, string>()
  const walk = (directory: string, above: readonly string[]): void => {
    const entries = readdirSync(join(root, directory), { withFileTypes: true })
    const id = directoryId(join(root, directory)) ?? ''
    // a link may lead back up
    if (above.includes(id)) return
    directories.set(directory, id)
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue
      const path = directory === '' ? entry.name : `${directory}/${entry.name}`
      try {
        const what = kindOf(entry, join(root, path))
        if (what === 'directory' && above.length < DEEPEST) walk(path, [...above, id])
        else if (what === 'file' && isManifestName(entry.name)) files.push(path)
      } catch (thrown) {
        // it may go while we walk
        if (errorCode(thrown) !== 'ENOENT') unreadable.set(path, errorCode(thrown) ?? errorText(thrown))
      }
    }
  }
  walk('', [])
  return { directories, files: files.sort(), unreadable }
}

/** Device and inode; undefined when it is no directory (any more). Throws when that cannot be found out. */
export function directoryId(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isDirectory() === true ? `${stat.dev}:${stat.ino}` : undefined
}

function kindOf(entry: Dirent, path: string): 'file' | 'directory' | undefined {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  if (!entry.isSymbolicLink()) return undefined
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isDirectory() === true ? 'directory' : stat?.isFile() === true ? 'file' : undefined
}

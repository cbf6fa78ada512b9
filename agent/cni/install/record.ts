// SPDX-License-Identifier: Apache-2.0
/** Remembers where an agent installed the files for runtimes, so that cleanup can remove them. Layer: agent/cni. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writeDurably } from '#lib/base/os/durable-file.ts'
import { errorCode } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { CONFLISTS } from './conflist.ts'
import { SHIM } from './shim.ts'

export interface Folders {
  readonly confDir: string
  readonly binDir: string
}

/** Before anything is put there. */
export function noteFolders(file: string, { confDir, binDir }: Folders): void {
  writeDurably(file, `${JSON.stringify({ confDir, binDir })}\n`)
}

/** Takes away what is still there, and returns its paths: first what makes runtimes ask. */
export function removeInstalled(file: string): readonly string[] {
  const folders = readFolders(file)
  if (folders === undefined) return []
  const lists = Object.values(CONFLISTS).map((name) => join(folders.confDir, name))
  const paths = [...lists, join(folders.binDir, SHIM)].filter((path) => existsSync(path))
  for (const path of [...paths, file]) rmSync(path)
  return paths
}

function readFolders(file: string): Folders | undefined {
  try {
    const raw: unknown = JSON.parse(readFileSync(file, 'utf8'))
    const { confDir, binDir } = isObject(raw) ? raw : {}
    if (typeof confDir !== 'string' || typeof binDir !== 'string') throw new TypeError(`${file}: confDir or binDir is missing`)
    return { confDir, binDir }
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}

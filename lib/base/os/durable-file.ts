// SPDX-License-Identifier: Apache-2.0
/** Files that are there as a whole or not at all, whatever happens to the machine. Layer: lib/base. */
import { closeSync, fsyncSync, globSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Replaces the file, and makes its folder. */
export function writeDurably(path: string, text: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true })
  const part = `${path}${UNFINISHED}`
  try {
    writeWhole(part, text, mode)
    renameSync(part, path)
  } catch (thrown) {
    // what is there of it takes room, of which there may be none
    rmSync(part, { force: true })
    throw thrown
  }
  syncFolder(path)
}

function writeWhole(path: string, text: string, mode: number): void {
  const file = openSync(path, 'w', mode)
  try {
    // goes on after a short write, or throws
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Nothing happens when it is not there. */
export function removeDurably(path: string): void {
  rmSync(path, { force: true })
  syncFolder(path)
}

/** What writers that were killed have left in a folder: files whose names do not come again. */
export function removeUnfinished(folder: string): void {
  for (const name of globSync(`*${UNFINISHED}`, { cwd: folder })) rmSync(join(folder, name), { force: true })
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

const UNFINISHED = '.part'

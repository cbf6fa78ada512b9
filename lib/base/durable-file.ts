// SPDX-License-Identifier: Apache-2.0
/** Files that are there as a whole or not at all, whatever happens to the machine. Layer: lib/base. */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Replaces the file, and makes its folder. */
export function writeDurably(path: string, text: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true })
  const part = `${path}.part`
  const file = openSync(part, 'w', mode)
  try {
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(part, path)
  syncFolder(path)
}

/** Nothing happens when it is not there. */
export function removeDurably(path: string): void {
  rmSync(path, { force: true })
  syncFolder(path)
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Reads one file, if it is another than before. Layer: lib/manifests. */
import { readFileSync, statSync } from 'node:fs'
import { errorCode, errorText } from '../base/errors.ts'

/** Tells whether a file is another one, or another version, than before. */
export type Stamp = string

export type FileRead =
  | { readonly kind: 'gone' }
  | { readonly kind: 'directory' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'unreadable'; readonly why: string }
  | { readonly kind: 'read'; readonly stamp: Stamp; readonly text: string }

/** Unless its stamp is still `known`. What is neither file nor directory counts as gone. Never throws. */
export function readChanged(path: string, known: Stamp | undefined): FileRead {
  try {
    return read(path, known)
  } catch (thrown) {
    return { kind: 'unreadable', why: errorCode(thrown) ?? errorText(thrown) }
  }
}

function read(path: string, known: Stamp | undefined): FileRead {
  const stat = statSync(path, { throwIfNoEntry: false })
  // a FIFO would block
  if (stat?.isFile() !== true) return { kind: stat?.isDirectory() === true ? 'directory' : 'gone' }
  // taken before reading: a write in between makes the next look find another stamp
  const stamp = `${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`
  if (stamp === known) return { kind: 'unchanged' }
  const text = readFileSync(path, 'utf8')
  return { kind: 'read', stamp, text: text.startsWith('\uFEFF') ? text.slice(1) : text }
}

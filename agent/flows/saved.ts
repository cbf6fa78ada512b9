// SPDX-License-Identifier: Apache-2.0
/** What an agent that ends knows of flows, for the one after it: so that nothing is told twice or lost.
 * Layer: agent/flows. */
import { readFileSync, rmSync, writeFileSync, renameSync } from 'node:fs'
import { errorCode } from '#lib/base/errors.ts'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import type { SavedBook } from './book.ts'

export interface Saved {
  readonly book: SavedBook
  readonly updates: readonly FlowUpdate[]
}

interface SavedFile extends Saved {
  readonly format: number
  /** counts of another boot's flow table mean nothing */
  readonly boot: string
}

/** Another where any of the types is another. */
const FORMAT = 1
const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** Throws Node's errors. */
export function writeSaved(path: string, saved: Saved): void {
  const file: SavedFile = { format: FORMAT, boot: bootId(), ...saved }
  writeFileSync(`${path}.new`, JSON.stringify(file), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Once: the file is gone then, for it does not know what is told meanwhile. Undefined: there is none that can be used.
 * Throws Node's errors, and SyntaxError. */
export function takeSaved(path: string): Saved | undefined {
  try {
    const file = JSON.parse(readFileSync(path, 'utf8')) as SavedFile
    return file.format === FORMAT && file.boot === bootId() ? file : undefined
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  } finally {
    rmSync(path, { force: true })
  }
}

function bootId(): string {
  return readFileSync(BOOT_ID, 'utf8').trim()
}

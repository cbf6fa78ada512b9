// SPDX-License-Identifier: Apache-2.0
/** Reads as many files as others can wait for. Layer: lib/manifests. */
import { join } from 'node:path'
import { readChanged, type FileRead, type Stamp } from './read-file.ts'

export interface FilesToRead {
  readonly root: string
  /** by path below it, each once; in order */
  readonly files: readonly { readonly file: string; readonly known: Stamp | undefined }[]
}

export const MOST_FILES = 256
/** No more is held at a time, but for a file that has more. */
const MOST_CHARACTERS = 4 << 20

/** The first ones, by their paths below the root: one at least where there is one. */
export function readPart({ root, files }: FilesToRead): ReadonlyMap<string, FileRead> {
  const reads = new Map<string, FileRead>()
  let characters = 0
  for (const { file, known } of files.slice(0, MOST_FILES)) {
    const read = readChanged(join(root, file), known)
    reads.set(file, read)
    if (read.kind === 'read') characters += read.text.length
    if (characters >= MOST_CHARACTERS) break
  }
  return reads
}

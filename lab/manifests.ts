// SPDX-License-Identifier: Apache-2.0
/** Reads the manifests of a directory as plain objects, as the agents find them there. Layer: lab. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readManifest } from '#lib/manifests/read.ts'
import { listTree } from '#lib/manifests/tree.ts'
import { LabError } from './errors.ts'

/** Every object of every manifest file below `dir`. Throws LabError with file and line for a file that cannot be
 * read. */
export function readManifests(dir: string): unknown[] {
  return listTree(dir).files.flatMap((name) => {
    const read = readManifest(name, readFileSync(join(dir, name), 'utf8'))
    if (read.kind === 'broken') throw new LabError(read.line === undefined ? name : `${name}:${read.line}`, read.reason)
    return read.objects.map((object) => object.value)
  })
}

// SPDX-License-Identifier: Apache-2.0
/** Pages that people write, with a part that is made from the code between markers. Layer: scripts. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { between } from '../../bench/base/markers.ts'

/** The page as it is to be. Throws where it is not there, or has no such markers. */
export function marked(path: string, name: string, text: string): string {
  return between(readFileSync(join(packageRoot(), path), 'utf8'), name, text)
}

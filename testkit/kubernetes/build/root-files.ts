// SPDX-License-Identifier: Apache-2.0
/** Programs of this machine, with the libraries that they are linked with, in the root file system of an image.
 * Layer: testkit. */
import { copyFileSync, existsSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { command } from '../../base/command.ts'

/** `path`: where the program is in the image. */
export async function addProgram(root: string, path: string, source: string): Promise<void> {
  const target = join(root, path)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(realpathSync(source), target)
  // one that is linked statically, as Debian's other busybox, has none, which ldd calls a failure
  const libraries = await command('sh', ['-c', 'ldd "$0" || :', source])
  for (const [library] of libraries.matchAll(/\/\S+/g)) addFile(root, library)
}

/** Where it is on this machine. */
export function addFile(root: string, path: string): void {
  const target = join(root, path)
  if (existsSync(target)) return
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(realpathSync(path), target)
}

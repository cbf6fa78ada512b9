// SPDX-License-Identifier: Apache-2.0
/** Folders that no other user may change. Layer: lib/base. */
import { lstatSync, statSync } from 'node:fs'
import { ConfigError } from '../errors.ts'

/** Throws ConfigError where another user owns a folder, the symbolic link that leads there, or may write to it. A
 * folder that is not there has no owner, and passes. */
export function checkOwnFolder(path: string): void {
  const link = lstatSync(path, { throwIfNoEntry: false })
  if (link === undefined) return
  const folder = statSync(path)
  const stranger = [link, folder].find(({ uid }) => uid !== process.geteuid?.())
  if (stranger !== undefined) throw new ConfigError(path, `belongs to user ${stranger.uid}: remove it, or give another folder`)
  if (!folder.isDirectory()) throw new ConfigError(path, 'is no folder')
  if ((folder.mode & 0o022) !== 0) throw new ConfigError(path, 'can be written to by others: chmod it to 755, or give another folder')
}

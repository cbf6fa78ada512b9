// SPDX-License-Identifier: Apache-2.0
/** Folders that nobody else may change. Layer: lib/base. */
import { lstatSync, statSync } from 'node:fs'
import { ConfigError } from '../errors.ts'

/** Throws ConfigError where somebody else owns a folder, the symbolic link that leads there, or may write to it. One
 * that is not there is nobody's. */
export function checkOwnFolder(path: string): void {
  const link = lstatSync(path, { throwIfNoEntry: false })
  if (link === undefined) return
  const folder = statSync(path)
  const stranger = [link, folder].find(({ uid }) => uid !== process.geteuid?.())
  if (stranger !== undefined) throw new ConfigError(path, `belongs to user ${stranger.uid}: remove it, or give another folder`)
  if (!folder.isDirectory()) throw new ConfigError(path, 'is no folder')
  if ((folder.mode & 0o022) !== 0) throw new ConfigError(path, 'can be written to by others: chmod it to 755, or give another folder')
}

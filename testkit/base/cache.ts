// SPDX-License-Identifier: Apache-2.0
/** The directory outside the repository in which fetched and built things stay between runs. Layer: testkit. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

export function cacheRoot(): string {
  return process.env['NETPLANE_CACHE'] ?? join(homedir(), '.cache', 'netplane')
}

/** A name that changes with anything in `value`. */
export function keyOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12)
}

/** The cache directory `name`, filled by `make` when it is not there yet. A half-made one is never seen: it is made
 * beside and renamed, and when another process was faster, its result is taken. */
export async function cached(name: string, make: (dir: string) => Promise<void>): Promise<string> {
  const dir = join(cacheRoot(), name)
  if (existsSync(dir)) return dir
  const half = `${dir}.${process.pid}.half`
  rmSync(half, { recursive: true, force: true })
  mkdirSync(half, { recursive: true })
  mkdirSync(dirname(dir), { recursive: true })
  try {
    await make(half)
    if (!existsSync(dir)) renameSync(half, dir)
  } finally {
    rmSync(half, { recursive: true, force: true })
  }
  return dir
}

// SPDX-License-Identifier: Apache-2.0
/** What killed runs of tests have left on the machine: cgroups without processes, and temporary folders.
 * Layer: test. */
import { globSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Of labs, clusters and tests, in the hierarchies of cgroup v1 and in cgroup2, wherever that is mounted. */
const CGROUPS = ['/sys/fs/cgroup/netplane-*', '/sys/fs/cgroup/*/netplane-*']
/** As `world.ts` names them: others may begin alike. */
const FOLDER = /^np\.[0-9]+\.[0-9]+$/

/** Removes them; their names. What a living process uses stays. Only for the run that has the machine: every temporary
 * folder but its own is another run's that is over. */
export function removeLeftovers(): readonly string[] {
  const cgroups = globSync(CGROUPS).filter((path) => isRemoved(path))
  const folders = foldersIn('/tmp', tmpdir())
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  return [...cgroups, ...folders]
}

/** Temporary folders of runs, but for this one. */
export function foldersIn(place: string, own: string): readonly string[] {
  return readdirSync(place)
    .filter((name) => FOLDER.test(name))
    .map((name) => join(place, name))
    .filter((path) => path !== own && isOwnFolder(path))
}

/** No link, and no other user's. */
function isOwnFolder(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isDirectory() === true && stat.uid === process.getuid?.()
}

/** With all below it: the kernel refuses one that has processes. */
function isRemoved(cgroup: string): boolean {
  try {
    const below = readdirSync(cgroup, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    for (const { name } of below) if (!isRemoved(join(cgroup, name))) return false
    rmdirSync(cgroup)
    return true
  } catch {
    return false
  }
}

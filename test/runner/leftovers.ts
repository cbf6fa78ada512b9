// SPDX-License-Identifier: Apache-2.0
/** What killed runs of tests have left on the machine: cgroups without processes, and temporary folders.
 * Layer: test. */
import { globSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Of labs, clusters and tests, in the hierarchies of cgroup v1 and in cgroup2, wherever that is mounted. */
const CGROUPS = ['/sys/fs/cgroup/netplane-*', '/sys/fs/cgroup/*/netplane-*']
const FOLDERS = '/tmp/np.*'

/** Removes them; their names. What a living process uses stays. Only for the run that has the machine: every temporary
 * folder but its own is another run's that is over. */
export function removeLeftovers(): readonly string[] {
  const cgroups = globSync(CGROUPS).filter((path) => isRemoved(path))
  const folders = globSync(FOLDERS).filter((path) => path !== tmpdir())
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  return [...cgroups, ...folders]
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

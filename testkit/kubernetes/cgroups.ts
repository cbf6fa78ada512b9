// SPDX-License-Identifier: Apache-2.0
/** Whether kubelet and runc find their controllers where a lab's node gives them. Layer: testkit. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Why there can be no node with a kubelet here; undefined: there can. Not tried where the controllers are in
 * cgroup2. */
export function cgroupObstacle(root = '/sys/fs/cgroup'): string | undefined {
  return existsSync(join(root, 'memory')) ? undefined : "kubelet's controllers are not in cgroup v1 hierarchies here"
}

// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cgroupObstacle } from '../../../testkit/kubernetes/cgroups.ts'

test('a machine with cgroup2 alone has no place for a kubelet, one with hierarchies of v1 has', () => {
  const root = mkdtempSync(join(tmpdir(), 'netplane-cgroups-'))
  try {
    expect(cgroupObstacle(root)).toBe("kubelet's controllers are not in cgroup v1 hierarchies here")
    mkdirSync(join(root, 'memory'))
    expect(cgroupObstacle(root)).toBeUndefined()
  } finally {
    rmSync(root, { recursive: true })
  }
})

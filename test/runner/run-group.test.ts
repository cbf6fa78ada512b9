// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runGroupObstacle } from './run-group.ts'

test('a machine without cgroups v1 is told by what it lacks', () => {
  const root = mkdtempSync(join(tmpdir(), 'netplane-cgroups-'))
  mkdirSync(join(root, 'cpu'))
  expect(runGroupObstacle(root)).toBe(`there is no ${root}/freezer: cgroups v1 are needed`)
  mkdirSync(join(root, 'freezer'))
  expect(runGroupObstacle(root)).toBeUndefined()
  rmSync(root, { recursive: true })
})

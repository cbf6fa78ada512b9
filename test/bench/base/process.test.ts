// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { cpuOf, memoryOf } from '../../../bench/base/process.ts'

test('CPU time is that of the children too', () => {
  const before = cpuOf(process.pid)
  execFileSync(process.execPath, ['-e', 'while (process.cpuUsage().user < 200_000);'])
  expect(cpuOf(process.pid) - before).toBeGreaterThan(100)
})

test('resident memory is in MB', () => {
  const { now, peak } = memoryOf(process.pid)
  expect(now).toBeGreaterThan(20)
  expect(peak).toBeGreaterThanOrEqual(now)
})

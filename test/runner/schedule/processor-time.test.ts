// SPDX-License-Identifier: Apache-2.0
/** Processor time is that of children that have ended. Layer: test. */
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { processorTime } from './processor-time.ts'

test('what a child works is counted once it has ended, with what its own children work', () => {
  const taken = processorTime()
  const work = 'while (process.cpuUsage().user < 300_000) for (let n = 0; n < 1e6; n++);'
  spawnSync('sh', ['-c', '"$0" -e "$1"; exit', process.execPath, work])
  expect(taken()).toBeGreaterThanOrEqual(0.3)
})

// SPDX-License-Identifier: Apache-2.0
/** What the runtime keeps is bounded, also while everything changes all the time. Layer: test. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'

/** Objects that live through a few collections and die, as compiled changes do; prints MB of room for new ones. */
const CHURN = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { limitYoung } from '#agent/node/memory.ts'
  const window = []
  for (let turn = 0; turn < 200; turn++) {
    if (process.argv[1] === 'limited') limitYoung()
    for (let at = 0; at < 20_000; at++) window[(turn % 16) * 20_000 + at] = { turn, at, text: [turn, at] }
  }
  console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size >> 20)
`

function roomMb(how: string): number {
  const args = ['--conditions=source', '--input-type=module', '-e', CHURN, how]
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8', cwd: process.cwd() }))
}

test('the room for new objects does not grow beyond what changes make use of', { timeout: 60_000 }, () => {
  expect(roomMb('limited')).toBeLessThanOrEqual(32)
  // else there is nothing to limit any more
  expect(roomMb('free')).toBeGreaterThan(32)
})

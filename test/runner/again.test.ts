// SPDX-License-Identifier: Apache-2.0
/** Second chances: what passes alone is unsteady, what fails again is red, and some never run again. Layer: test. */
import { expect, test } from 'vitest'
import { secondChance, suspectsOf, type Verdict } from './again.ts'
import type { Outcome } from './failures.ts'
import type { Part, Stage } from './stages.ts'

const NONE = { passed: 0, failed: 0, skipped: 0 }
const CLEAN: Outcome = { passed: 3, failed: 0, skipped: 0, failures: [] }

/** Two tests of a file: one passed, and one failed. */
function broken(name: string, message = 'expected 1 to be 2'): Outcome {
  const failures = [{ text: `${name} > a test\n    ${message}`, file: name }]
  return { passed: 1, failed: 1, skipped: 1, failures, files: [{ name, seconds: 1, passed: 1, failed: 1, skipped: 1 }] }
}

interface Told extends Verdict {
  /** files that ran again, "command" for a command */
  readonly ran: readonly string[]
}

/** The verdict on outcomes of one stage whose files come to `second` when they run again. */
async function judge(outcomes: readonly Outcome[], second: Outcome, now = (): number => 0): Promise<Told> {
  const ran: string[] = []
  const again = (file: string | undefined): Part => {
    return () => {
      ran.push(file ?? 'command')
      return Promise.resolve(second)
    }
  }
  const stage: Stage = { name: 'lab', parts: [], again }
  const verdict = await secondChance(
    outcomes.flatMap((outcome) => suspectsOf(stage, outcome)),
    () => undefined,
    now,
  )
  return { ...verdict, ran }
}

test('a file that passes alone counts as it did then, and is named with its first error', async () => {
  const { change, failures, unsteady, ran } = await judge([broken('test/lab/x.test.ts')], CLEAN)
  expect(ran).toEqual(['test/lab/x.test.ts'])
  expect(change).toEqual({ passed: 2, failed: -1, skipped: -1 })
  expect(failures).toEqual([])
  expect(unsteady).toEqual(['lab: test/lab/x.test.ts > a test: expected 1 to be 2'])
})

test.each([
  ['fails again', broken('test/lab/x.test.ts')],
  ['runs no test', { ...NONE, failures: [] }],
  ['skips a test', { ...CLEAN, skipped: 1 }],
])('a file that %s stays a failure', async (_what, second) => {
  const { change, failures, unsteady } = await judge([broken('test/lab/x.test.ts')], second)
  expect(change).toEqual(NONE)
  expect(failures.map(({ failure }) => failure.text)).toEqual(['test/lab/x.test.ts > a test\n    expected 1 to be 2'])
  expect(unsteady).toEqual([])
})

test('a command runs again as a whole', async () => {
  const demo: Outcome = { passed: 67, failed: 1, skipped: 0, failures: [{ text: 'FAILED one' }, { text: 'FAILED two' }] }
  const { change, unsteady, ran } = await judge([demo], { ...CLEAN, passed: 68 })
  expect(ran).toEqual(['command'])
  expect(change).toEqual({ passed: 1, failed: -1, skipped: 0 })
  expect(unsteady).toEqual(['lab: FAILED one', 'lab: FAILED two'])
})

test.each([
  ['packet tables', broken('test/kernel/packets/services.test.ts')],
  ['random frames', broken('test/kernel/frames.test.ts')],
  ['random worlds', broken('test/kernel/policy/random/worlds.test.ts')],
  ['tests of the addon', broken('test/native/maps.test.ts')],
  ['tests of a sanitized shim', broken('test/agent/cni/install/shim.test.ts')],
  ['tests of a sanitized traffic program', broken('test/bench/tools/traffic.test.ts')],
  ["a sanitizer's report", broken('test/lab/x.test.ts', 'ERROR: AddressSanitizer: heap-use-after-free')],
])('%s never run again', async (_what, outcome) => {
  const { failures, ran } = await judge([outcome], CLEAN)
  expect(ran).toEqual([])
  expect(failures.length).toBe(1)
})

test('a stage that says nothing of a second time has none', async () => {
  const lint: Stage = { name: 'lint', parts: [] }
  const verdict = await secondChance(
    suspectsOf(lint, { passed: 0, failed: 1, skipped: 0, failures: [{ text: 'error' }] }),
    () => undefined,
    () => 0,
  )
  expect(verdict.failures).toEqual([{ stage: 'lint', failure: { text: 'error' } }])
})

test('six files run again, of seven none does', async () => {
  const names = Array.from({ length: 7 }, (_, at) => broken(`test/lab/${at}.test.ts`))
  expect((await judge(names.slice(1), CLEAN)).ran.length).toBe(6)
  const { ran, failures } = await judge(names, CLEAN)
  expect(ran).toEqual([])
  expect(failures.length).toBe(7)
})

test('after ten minutes nothing passes any more', async () => {
  let minutes = 0
  const slowly = (): number => 60_000 * 4 * minutes++
  // the clock is read once at the beginning, then before and after each file
  const { failures, unsteady, ran } = await judge(
    [1, 2, 3].map((at) => broken(`test/lab/${at}.test.ts`)),
    CLEAN,
    slowly,
  )
  expect(ran).toEqual(['test/lab/1.test.ts'])
  expect(unsteady.length).toBe(1)
  expect(failures.length).toBe(2)
})

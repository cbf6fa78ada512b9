// SPDX-License-Identifier: Apache-2.0
/** Second chances: what passes alone is unsteady, what fails again is red, and some never run again. Layer: test. */
import { expect, test } from 'vitest'
import { secondChance, suspectsOf, type ChanceOptions, type Verdict } from './again.ts'
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

const OPTIONS: ChanceOptions = { print: () => undefined, now: () => 0, known: new Set(), today: '2026-11-29' }

/** The verdict on outcomes of one stage whose files come to `second` when they run again. */
async function judge(outcomes: readonly Outcome[], second: Outcome, options: Partial<ChanceOptions> = {}): Promise<Told> {
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
    { ...OPTIONS, ...options },
  )
  return { ...verdict, ran }
}

test('a file that passes alone counts as it did then, and is named with its first error', async () => {
  const { change, failures, unsteady, rows, ran } = await judge([broken('test/lab/x.test.ts')], CLEAN)
  expect(ran).toEqual(['test/lab/x.test.ts'])
  expect(change).toEqual({ passed: 2, failed: -1, skipped: -1 })
  expect(failures).toEqual([])
  expect(unsteady).toEqual(['lab: test/lab/x.test.ts > a test: expected 1 to be 2'])
  expect(rows).toEqual(['| `test/lab/x.test.ts` | a test: expected 1 to be 2 | 2026-11-29 |'])
})

test('what is on the list of unsteady ones has no second chance, file or command', async () => {
  const told: string[] = []
  const print = (text: Buffer | string): number => told.push(String(text).trim())
  const demo: Outcome = { passed: 67, failed: 1, skipped: 0, failures: [{ text: 'FAILED one' }] }
  const known = new Set(['test/lab/x.test.ts', 'lab'])
  const { failures, ran } = await judge([broken('test/lab/x.test.ts'), broken('test/lab/y.test.ts'), demo], CLEAN, { known, print })
  expect(ran).toEqual(['test/lab/y.test.ts'])
  expect(failures.length).toBe(2)
  expect(told[0]).toBe('test/lab/x.test.ts failed, and is in test/unsteady.md: it has no second chance')
})

test('a file with a failed test that says [once] has no second chance', async () => {
  const outcome = broken('test/lab/x.test.ts')
  const failures = outcome.failures.map((failure) => ({ ...failure, isOnce: true as const }))
  const verdict = await judge([{ ...outcome, failures: [...outcome.failures, ...failures] }], CLEAN)
  expect(verdict.ran).toEqual([])
  expect(verdict.failures.length).toBe(2)
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
  const { change, unsteady, rows, ran } = await judge([demo], { ...CLEAN, passed: 68 })
  expect(ran).toEqual(['command'])
  expect(change).toEqual({ passed: 1, failed: -1, skipped: 0 })
  expect(unsteady).toEqual(['lab: FAILED one', 'lab: FAILED two'])
  expect(rows).toEqual(['| `lab` | FAILED one | 2026-11-29 |'])
})

test.each([
  ['packet tables', broken('test/kernel/packets/services.test.ts')],
  ['random frames', broken('test/kernel/frames.test.ts')],
  ['random worlds', broken('test/kernel/policy/random/worlds.test.ts')],
  ['stories of policies', broken('test/kernel/policy/stories.test.ts')],
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
  const verdict = await secondChance(suspectsOf(lint, { passed: 0, failed: 1, skipped: 0, failures: [{ text: 'error' }] }), OPTIONS)
  expect(verdict.failures).toEqual([{ stage: 'lint', failure: { text: 'error' } }])
})

test('three files run again, of four none does', async () => {
  const names = Array.from({ length: 4 }, (_, at) => broken(`test/lab/${at}.test.ts`))
  expect((await judge(names.slice(1), CLEAN)).ran.length).toBe(3)
  const { ran, failures } = await judge(names, CLEAN)
  expect(ran).toEqual([])
  expect(failures.length).toBe(4)
})

test('a second run that hangs is ended when the time is over, and stays a failure', async () => {
  const hanging: Part = (_print, limit) =>
    new Promise((resolve) => {
      limit?.addEventListener('abort', () => {
        resolve({ ...NONE, failed: 1, failures: [{ text: 'ended' }] })
      })
    })
  const stage: Stage = { name: 'lab', parts: [], again: () => hanging }
  const options = { ...OPTIONS, now: () => performance.now(), mostMs: 20 }
  const { failures, unsteady } = await secondChance(suspectsOf(stage, broken('test/lab/x.test.ts')), options)
  expect([failures.length, unsteady.length]).toEqual([1, 0])
})

test('after ten minutes nothing passes any more', async () => {
  let minutes = 0
  const slowly = (): number => 60_000 * 4 * minutes++
  // the clock is read once at the beginning, then before and after each file
  const { failures, unsteady, ran } = await judge(
    [1, 2, 3].map((at) => broken(`test/lab/${at}.test.ts`)),
    CLEAN,
    { now: slowly },
  )
  expect(ran).toEqual(['test/lab/1.test.ts'])
  expect(unsteady.length).toBe(1)
  expect(failures.length).toBe(2)
})

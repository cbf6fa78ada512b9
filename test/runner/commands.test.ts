// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hasEnded } from '../../lab/processes/process.ts'
import { suspectsOf } from './again.ts'
import { command, vitest } from './commands.ts'

const silent = (): void => undefined

test('a command that is still at it when its time is over is ended with all that it has begun, and has failed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-commands-'))
  const pids = join(folder, 'pids')
  // what leaves the session, and keeps the output open
  const script = `setsid sleep 1000 & echo $! > ${pids}; sleep 1000`
  const isBegun = async (): Promise<boolean> => await Promise.resolve(existsSync(pids) && readFileSync(pids, 'utf8').endsWith('\n'))
  const limit = new AbortController()
  const run = command(silent, ['sh', '-c', script], limit.signal)
  await expect.poll(isBegun).toBe(true)
  limit.abort()
  expect(await run).toMatchObject({ passed: 0, failed: 1, failures: [{ text: 'ended: its time is over' }] })
  const pid = Number(readFileSync(pids, 'utf8'))
  await expect.poll(() => hasEnded(pid)).toBe(true)
  rmSync(folder, { recursive: true })
})

test('one that ends by itself is not touched', async () => {
  const limit = new AbortController()
  expect(await command(silent, ['true'], limit.signal)).toMatchObject({ passed: 1, failed: 0 })
  limit.abort()
})

/** In the place of vitest: leaves a report on one file that passed, or half of one, and ends as the script says. */
function standIn(report: string, script: string): readonly string[] {
  const find = 'for word; do case $word in --outputFile.json=*) out=${word#*=};; esac; done'
  return ['sh', '-c', `${find}; printf '%s' '${report}' > "$out"; ${script}`, 'sh']
}

const FILE = 'test/lab/x.test.ts'
const PASSED = JSON.stringify({
  ...{ numPassedTests: 1, numFailedTests: 0 },
  testResults: [
    { name: `${process.cwd()}/${FILE}`, status: 'passed', assertionResults: [{ status: 'passed', title: 'one', ancestorTitles: [] }] },
  ],
})

test.each<[string, Record<'script' | 'said' | 'report', string>]>([
  ['killed', { script: 'rm "$out"; kill -KILL $$', said: 'ended by SIGKILL', report: PASSED }],
  ['killed while it writes its report', { script: 'kill -KILL $$', said: 'ended by SIGKILL', report: PASSED.slice(0, 50) }],
  ['ended by an error outside of tests', { script: 'echo Unhandled Error; echo Error: late; exit 1', said: 'Error: late', report: PASSED }],
  ['at its end without a test', { script: 'exit 0', said: 'test/lab/x.test.ts did not run', report: '{"testResults": []}' }],
])('a run of one file that is %s has failed once, and by its name', async (_what, { script, said, report }) => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-commands-'))
  const outcome = await vitest(silent, { project: 'lab', folder, prefix: standIn(report, script), only: [FILE] })
  rmSync(folder, { recursive: true })
  const [suspect, ...others] = suspectsOf({ name: 'lab' }, outcome)
  expect(outcome.failed).toBe(1)
  expect([suspect?.file, suspect?.count.failed, others]).toEqual([FILE, 1, []])
  expect(suspect?.failures.map(({ text }) => text).join('\n')).toContain(said)
})

test('what names a test that must never fail has no second chance, also where the process was killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-commands-'))
  const prefix = standIn('', 'echo "FAIL x.test.ts > a rule holds [once]"; kill -KILL $$')
  const { failures } = await vitest(silent, { project: 'lab', folder, prefix, only: [FILE] })
  rmSync(folder, { recursive: true })
  expect(failures).toMatchObject([{ file: FILE, isOnce: true }])
})

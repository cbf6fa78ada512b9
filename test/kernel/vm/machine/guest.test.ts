// SPDX-License-Identifier: Apache-2.0
/** How a guest's end is judged, with shell scripts in the place of emulators. Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { judge, runGuest } from './guest.ts'

const TALLY = '2 passed, 0 failed\r\n'

describe('judge', () => {
  test.each([
    ['a tally without failures and exit code 0 is ok', `${TALLY}guest-exit t 0\r\n`, 'ok'],
    ['a failed test is not', '2 passed, 1 failed\nguest-exit t 1\n', 'tests failed'],
    ['a failed test with exit code 0 neither', '2 passed, 1 failed\nguest-exit t 0\n', 'tests failed'],
    ['no exit code', TALLY, 'no exit code came out (ended)'],
    ['an exit code with another token', `${TALLY}guest-exit other 0\n`, 'no exit code came out (ended)'],
    ['half an exit code', `${TALLY}guest-exit t 1`, 'no exit code came out (ended)'],
    ['an exit code that the tally does not explain', `${TALLY}guest-exit t 139\n`, 'the payload ended with 139'],
    ['an exit code that the guest did not learn', `${TALLY}guest-exit t none\n`, 'the payload ended with none'],
    ['no tally', 'guest-exit t 0\n', 'the payload gave no tally and ended with 0'],
    ['no tests', '0 passed, 0 failed\nguest-exit t 0\n', 'no test was run'],
  ])('%s', (_name, text, wanted) => {
    const result = judge(text, 't', 'ended')
    expect(result.ok).toBe(wanted === 'ok')
    expect(result.reason ?? (result.ok ? 'ok' : 'tests failed')).toBe(wanted)
  })

  test("reports the payload's lines with what goes on from them, and nothing else", () => {
    const { lines } = judge(`[ 1.0] kernel\nfacts: x\nFAIL a: b\n   got c\nnoise\n${TALLY}guest-exit t 0\n`, 't', 'ended')
    expect(lines).toEqual(['facts: x', 'FAIL a: b', '   got c'])
  })
})

describe('runGuest', () => {
  const dir = mkdtempSync(join(tmpdir(), 'netplane-guest-'))
  afterAll(() => rmSync(dir, { recursive: true }))
  const log = join(dir, 'log')
  const run = (script: string, timeout = 30_000) => runGuest({ program: '/bin/sh', args: ['-c', script], token: 't', log, timeout })

  test('takes the console from both outputs and keeps it', async () => {
    const result = await run('echo 1 passed, 0 failed; echo guest-exit t 0 >&2')
    expect(result).toMatchObject({ ok: true, passed: 1, failed: 0 })
    expect(readFileSync(log, 'utf8')).toContain('guest-exit t 0')
  })

  test('ends what does not end, and what it started', async () => {
    const result = await run('echo 1 passed, 0 failed; sleep 1000 & wait', 300)
    expect(result).toMatchObject({ ok: false, reason: 'no exit code came out (not done after 0.3 s)' })
  })

  test('does not wait for the end after the last line', async () => {
    const result = await run('echo 1 passed, 0 failed; echo guest-exit t 0; sleep 1000')
    expect(result.ok).toBe(true)
    expect(result.seconds).toBeLessThan(20)
  })

  test('says when the program is not there', async () => {
    const result = await runGuest({ program: join(dir, 'no-emulator'), args: [], token: 't', log, timeout: 30_000 })
    expect(result).toMatchObject({ ok: false, reason: 'no exit code came out (the emulator ended with 127)' })
    expect(result.lines.join('\n')).toContain('no-emulator')
  })
})

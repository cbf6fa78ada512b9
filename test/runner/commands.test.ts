// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hasEnded } from '../../lab/processes/process.ts'
import { command } from './commands.ts'

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

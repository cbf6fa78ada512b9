// SPDX-License-Identifier: Apache-2.0
/** Handles and the event loop's end, garbage collection, worker threads. Each case is a process. Layer: test. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { compiled, isRoot } from './support.ts'

const FIXTURE = fileURLToPath(new URL('fixtures/lifetime.ts', import.meta.url))

/** What it printed, and how it ended: killed after 20 s. */
async function run(mode: string): Promise<{ out: string; end: unknown }> {
  const child = spawn(process.execPath, ['--conditions=source', '--expose-gc', FIXTURE, mode, compiled('events')], { timeout: 20_000 })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const end = await new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)))
  return { out: out.trim(), end }
}

describe.skipIf(!isRoot)('the life of handles', () => {
  test.each([
    ['closed', 'closed'],
    ['collected', 'collected'],
    ['worker', 'ended'],
    ['terminated', 'terminated'],
    ['exit', 'exit'],
    ['thrown', 'from the callback'],
  ])('%s', async (mode, out) => {
    expect(await run(mode)).toEqual({ out, end: 0 })
  })
})

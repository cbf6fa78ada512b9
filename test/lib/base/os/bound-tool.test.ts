// SPDX-License-Identifier: Apache-2.0
/** Real programs that end with the process that runs them, however that ends. Layer: test. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runBound } from '#lib/base/os/bound-tool.ts'
import { packageRoot } from '#lib/base/os/package.ts'

const { signal } = new AbortController()
/** It says its own number, and what ended it. */
const PROGRAM = `echo $$ > "$1/pid"; trap 'echo asked > "$1/end"; exit 3' TERM; while :; do sleep 0.05; done`
let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-bound-'))
})

afterAll(() => {
  rmSync(folder, { recursive: true })
})

function said(name: string): string {
  try {
    return readFileSync(join(folder, name), 'utf8').trim()
  } catch {
    return ''
  }
}

function forget(): void {
  for (const name of ['pid', 'end']) rmSync(join(folder, name), { force: true })
}

test('its output, how it failed, and that it is not there', async () => {
  const run = (...command: readonly string[]): Promise<string | undefined> => runBound(command, { timeoutMs: 10_000, signal })
  expect(await run('printf', '%s,', 'a b', '$c')).toBe('a b,$c,')
  await expect(run('sh', '-c', 'echo why >&2; exit 4')).rejects.toMatchObject({ status: 4, stderr: 'why\n' })
  expect(await run('no-such-program')).toBeUndefined()
})

test.each(['its time is over', 'it is called off'])('it is asked to end when %s', async (why) => {
  forget()
  const stop = new AbortController()
  const isTimed = why === 'its time is over'
  const ended = runBound(['sh', '-c', PROGRAM, 'sh', folder], { timeoutMs: isTimed ? 300 : 10_000, signal: stop.signal })
  if (!isTimed)
    setTimeout(() => {
      stop.abort()
    }, 300)
  await expect(ended).rejects.toThrow()
  await expect.poll(() => said('end')).toBe('asked')
})

test('it is asked to end when the process that runs it is killed', async () => {
  forget()
  const module = join(packageRoot(), 'lib/base/os/bound-tool.ts')
  const script = join(folder, 'run.mjs')
  const command = JSON.stringify(['sh', '-c', PROGRAM, 'sh', folder])
  writeFileSync(
    script,
    `import { runBound } from ${JSON.stringify(module)}
await runBound(${command}, { timeoutMs: 60_000, signal: new AbortController().signal })`,
  )
  const process_ = spawn(process.execPath, ['--conditions=source', script], { stdio: 'inherit' })
  await expect.poll(() => said('pid'), { timeout: 10_000 }).not.toBe('')
  process_.kill('SIGKILL')
  await expect.poll(() => said('end')).toBe('asked')
})

// SPDX-License-Identifier: Apache-2.0
/** What another plugin writes to standard error. Layer: test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runDelegate } from '#agent/cni/exec-plugin.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-exec-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

function run(script: string): Promise<string> {
  writeFileSync(join(folder, 'other'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return runDelegate({ command: 'ADD', type: 'other', config: '{}', folders: [folder], environment: {}, timeoutMs: 10_000 })
}

test('the end of what a plugin writes to standard error is in its error', async () => {
  await expect(run('head -c 300000 /dev/zero | tr "\\\\0" x >&2; echo no range left >&2; exit 1')).rejects.toThrow(
    /^plugin other: ended with 1: x{486}no range left$/,
  )
  await expect(run('exit 3')).rejects.toThrow(/^plugin other: ended with 3$/)
})

test('a plugin that says much and is well is well', async () => {
  expect(await run('head -c 300000 /dev/zero >&2; echo {}')).toBe('{}\n')
})

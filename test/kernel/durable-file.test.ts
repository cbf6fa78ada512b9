// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { writeDurably } from '#lib/base/os/durable-file.ts'

test('a file for which there is no room stays as it was, and nothing is left beside it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-durable-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', folder])
  onTestFinished(() => {
    execFileSync('umount', [folder])
    rmSync(folder, { recursive: true })
  })
  const file = join(folder, 'a.json')
  writeDurably(file, 'before')
  expect(() => {
    writeDurably(file, 'x'.repeat(20_000))
  }).toThrow('ENOSPC')
  expect([readFileSync(file, 'utf8'), readdirSync(folder)]).toEqual(['before', ['a.json']])
  writeDurably(file, 'after')
  expect(readFileSync(file, 'utf8')).toBe('after')
})

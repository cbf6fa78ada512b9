// SPDX-License-Identifier: Apache-2.0
/** One file, as it is found. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readChanged } from '#lib/manifests/read-file.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'np-file-'))
})
afterEach(() => {
  rmSync(root, { recursive: true, force: true })
})

test('a file is read when it is another than before', () => {
  const file = join(root, 'a.yaml')
  expect(readChanged(file, undefined)).toEqual({ kind: 'gone' })
  writeFileSync(file, '\uFEFFkind: A\n')
  const first = readChanged(file, undefined)
  if (first.kind !== 'read') throw new Error(first.kind)
  expect(first.text).toBe('kind: A\n')
  expect(readChanged(file, first.stamp)).toEqual({ kind: 'unchanged' })
  utimesSync(file, 1, 1)
  expect(readChanged(file, first.stamp).kind).toBe('read')
})

test('only files are read', () => {
  execFileSync('mkfifo', [join(root, 'pipe.yaml')])
  mkdirSync(join(root, 'dir.yaml'))
  expect(readChanged(join(root, 'pipe.yaml'), undefined)).toEqual({ kind: 'gone' })
  expect(readChanged(join(root, 'dir.yaml'), undefined)).toEqual({ kind: 'directory' })
})

test('why a file cannot be read', () => {
  symlinkSync('self.yaml', join(root, 'self.yaml'))
  expect(readChanged(join(root, 'self.yaml'), undefined)).toEqual({ kind: 'unreadable', why: 'ELOOP' })
})

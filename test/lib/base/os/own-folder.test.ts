// SPDX-License-Identifier: Apache-2.0
/** Folders that others may change are refused. Layer: test. */
import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkOwnFolder } from '#lib/base/os/own-folder.ts'

let parent: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'netplane-own-'))
})
afterEach(() => {
  rmSync(parent, { recursive: true })
})

function made(name: string, mode: number): string {
  const path = join(parent, name)
  mkdirSync(path)
  chmodSync(path, mode)
  return path
}

test('a folder of ours alone passes, readable or not, or not there', () => {
  for (const path of [made('a', 0o700), made('b', 0o755), join(parent, 'none')]) checkOwnFolder(path)
  symlinkSync(made('c', 0o755), join(parent, 'link'))
  checkOwnFolder(join(parent, 'link'))
})

test.each([0o777, 0o1777, 0o775])('a folder writable for others is refused: %o', (mode) => {
  const path = made('a', mode)
  expect(() => {
    checkOwnFolder(path)
  }).toThrow(`${path}: can be written to by others: chmod it to 755, or give another folder`)
})

test('a path that is no folder is refused', () => {
  const path = join(parent, 'file')
  writeFileSync(path, '')
  expect(() => {
    checkOwnFolder(path)
  }).toThrow(`${path}: is no folder`)
})

test.skipIf(process.geteuid?.() !== 0)('a folder of another user, or behind another user’s symbolic link, is refused', () => {
  const [path, link] = [made('a', 0o700), join(parent, 'link')]
  symlinkSync(made('b', 0o700), link)
  chownSync(path, 65534, 65534)
  lchownSync(link, 65534, 65534)
  for (const one of [path, link])
    expect(() => {
      checkOwnFolder(one)
    }).toThrow(`${one}: belongs to user 65534: remove it, or give another folder`)
})

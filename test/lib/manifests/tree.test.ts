// SPDX-License-Identifier: Apache-2.0
/** Directories as they are found. Layer: test. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { directoryId, listTree } from '#lib/manifests/tree.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'np-tree-'))
})
afterEach(() => {
  rmSync(root, { recursive: true, force: true })
})

test('manifests in it and below, nothing hidden, no circles', () => {
  mkdirSync(join(root, 'sub/deep'), { recursive: true })
  mkdirSync(join(root, '.git'))
  for (const file of ['b.yaml', 'a.json', 'notes.txt', '.hidden.yaml', 'sub/c.yml', 'sub/deep/d.yaml', '.git/e.yaml'])
    writeFileSync(join(root, file), '')
  symlinkSync('a.json', join(root, 'link.json'))
  symlinkSync('nowhere', join(root, 'dangling.json'))
  symlinkSync('..', join(root, 'sub/circle'))
  const tree = listTree(root)
  expect(tree.files).toEqual(['a.json', 'b.yaml', 'link.json', 'sub/c.yml', 'sub/deep/d.yaml'])
  expect([...tree.directories.keys()]).toEqual(['', 'sub', 'sub/deep'])
})

test('a directory is known by more than its name', () => {
  const before = directoryId(root)
  renameSync(root, `${root}-old`)
  expect(directoryId(root)).toBeUndefined()
  mkdirSync(root)
  expect(directoryId(root)).not.toBe(before)
  rmSync(`${root}-old`, { recursive: true })
  expect(() => listTree(join(root, 'nothing'))).toThrow('ENOENT')
})

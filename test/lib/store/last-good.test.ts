// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LastGoodFile } from '#lib/store/last-good.ts'

const OBJECT = { file: 'policy.yaml', object: { kind: 'GlobalNetworkPolicy' } }

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-last-good-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

test('what is kept is there for the next process, and no other user can read it', () => {
  const path = join(folder, 'state', 'last-good.json')
  new LastGoodFile(path).write([OBJECT])
  expect(new LastGoodFile(path).read()).toEqual([OBJECT])
  expect(statSync(path).mode & 0o777).toBe(0o600)
  new LastGoodFile(path).write([])
  expect(existsSync(path)).toBe(false)
})

test('a file that cannot be understood is reported, until another takes its place', () => {
  const path = join(folder, 'last-good.json')
  writeFileSync(path, '[{"file"')
  const file = new LastGoodFile(path)
  expect(file.read()).toEqual([])
  expect(file.failed).toContain(`last good versions of the process before cannot be read in ${path}`)
  file.write([OBJECT])
  expect(file.failed).toBeUndefined()
})

test('a file that is not there is no failure', () => {
  const file = new LastGoodFile(join(folder, 'last-good.json'))
  expect([file.read(), file.failed]).toEqual([[], undefined])
})

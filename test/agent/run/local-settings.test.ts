// SPDX-License-Identifier: Apache-2.0
/** Settings that the agent is started with. Layer: test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { localSettings } from '#agent/run/local-settings.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-settings-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

function file(text: string): string {
  const path = join(folder, 'settings.yaml')
  writeFileSync(path, text)
  return path
}

test.each([
  ['healthPort: 1\nvxlanVNI: null\n', { healthPort: 1 }, 'healthPort'],
  ['apiVersion: netplane.io/v3\nkind: FelixConfiguration\nspec:\n  healthPort: 1\n', { healthPort: 1 }, 'spec.healthPort'],
  ['', {}, 'healthPort'],
])('a file gives settings, each with its path: %j', (text, spec, path) => {
  const path_ = file(text)
  const [said] = localSettings(path_, {})
  expect(said).toMatchObject({ origin: 'file', ref: `file ${path_}`, spec })
  expect(said?.pathOf('healthPort')).toBe(path)
})

test.each([
  ['a: [', /settings.yaml:\d+ is not valid YAML/],
  ['- a\n', /must be one mapping of fields/],
  ['a: 1\n---\nb: 1\n', /must be one mapping of fields/],
])('a file that cannot be used ends the start: %j', (text, reason) => {
  expect(() => localSettings(file(text), {})).toThrow(reason)
})

test('a file that is not there ends the start', () => {
  expect(() => localSettings(join(folder, 'none.yaml'), {})).toThrow(/--config: .*none.yaml cannot be read: ENOENT/)
})

test('the environment goes before the file', () => {
  expect(localSettings(file('healthPort: 1'), { FELIX_HEALTHPORT: '2' }).map(({ origin }) => origin)).toEqual(['environment', 'file'])
  expect(localSettings(undefined, { PATH: '/' })).toEqual([])
})

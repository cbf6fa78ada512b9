// SPDX-License-Identifier: Apache-2.0
/** Facts from files that kubectl has printed. Layer: test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findInstallation } from '#upgrade/found/find.ts'
import { factsFromFiles } from '#upgrade/found/from-files.ts'
import { factsOf } from '#upgrade/found/trim.ts'
import { facts, installed, object } from './installed.ts'

let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-files-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

const all = installed('3.27', 'chart')

test('a List in YAML, one of JSON and single objects in a folder below come to the same as the objects', () => {
  mkdirSync(join(folder, 'more'))
  writeFileSync(join(folder, 'a.yaml'), dump({ apiVersion: 'v1', kind: 'List', items: all.slice(0, 4) }))
  writeFileSync(join(folder, 'b.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: all.slice(4, 8) }))
  writeFileSync(
    join(folder, 'more/c.yml'),
    all
      .slice(8)
      .map((one) => dump(one))
      .join('---\n'),
  )
  writeFileSync(join(folder, 'version.yaml'), dump({ clientVersion: { gitVersion: 'v1.30.0' }, serverVersion: { gitVersion: 'v1.34.1' } }))
  expect(factsFromFiles(folder)).toEqual(factsOf(facts(all)))
  expect(findInstallation(factsFromFiles(folder)).found?.method).toBe('chart')
})

test('kinds that are not known are kept, and no version is one that is not said', () => {
  const thing = object('example.com/v1 Thing', 'x', { spec: { a: 1 } })
  writeFileSync(join(folder, 'a.yaml'), dump(thing))
  expect(factsFromFiles(folder)).toEqual({ serverVersion: undefined, objects: [thing] })
})

test.each([
  ['is broken', 'a: [', /a\.yaml:1: is not valid YAML/],
  ['holds no objects', 'a: 1', /a\.yaml: has something in it that is no object of Kubernetes/],
  ['holds a list of other things', 'kind: List\nitems: [1]', /is no object of Kubernetes/],
])('a file that %s is refused, as a plan without it would be wrong', (_, text, message) => {
  writeFileSync(join(folder, 'a.yaml'), text)
  expect(() => factsFromFiles(folder)).toThrow(message)
})

test('a folder without files, and one that is not there, are refused', () => {
  expect(() => factsFromFiles(folder)).toThrow('has no files of YAML or JSON')
  expect(() => factsFromFiles(join(folder, 'none'))).toThrow(/none: cannot be read: .*ENOENT/)
})

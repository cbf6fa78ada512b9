// SPDX-License-Identifier: Apache-2.0
/** Folders of a node below a mount of its root. Layer: test. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { placeOnNode } from '#lib/base/os/node-path.ts'
import { hostPathFindings } from '#agent/preflight/host-paths.ts'

let root = ''

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'netplane-root-'))
  mkdirSync(join(root, 'run/multus'), { recursive: true })
  mkdirSync(join(root, 'var/lib'), { recursive: true })
})

afterEach(() => {
  rmSync(root, { recursive: true })
})

const place = (path: string): string => {
  const { found, isWhole } = placeOnNode(root, path)
  return `${found.slice(root.length)}${isWhole ? '' : ' …'}`
}

test.each([
  ['/run/multus', '/run/multus'],
  ['/run/./multus/', '/run/multus'],
  ['/var/lib/netplane/x', '/var/lib …'],
  ['/opt/cni/bin', ' …'],
  ['/../../run', '/run'],
])('%s is %s', (path, found) => {
  expect(place(path)).toBe(found)
})

test('what is missing of a path is where it would be', () => {
  symlinkSync('/run/new', join(root, 'var/moved'))
  expect(['/opt/cni/bin', '/var/moved/bin', '/run'].map((path) => placeOnNode(root, path).path.slice(root.length))).toEqual([
    '/opt/cni/bin',
    '/run/new/bin',
    '/run',
  ])
})

test('links lead where they do on the node, and not in the container', () => {
  symlinkSync('/run', join(root, 'var/run'))
  symlinkSync('../lib', join(root, 'var/lib/same'))
  symlinkSync('nowhere', join(root, 'var/gone'))
  symlinkSync('circle', join(root, 'var/circle'))
  expect(['/var/run/multus', '/var/run/other', '/var/lib/same', '/var/gone/x'].map(place)).toEqual([
    '/run/multus',
    '/run …',
    '/var/lib',
    '/var …',
  ])
  expect(() => place('/var/circle')).toThrow('/var/circle has more than 40 symbolic links')
})

test('what can be written is left as it was, and what is no folder is told', () => {
  writeFileSync(join(root, 'var/file'), '')
  expect(hostPathFindings(root, ['/var/lib/netplane', '/run/multus', '/opt/cni/bin'])).toEqual([])
  expect(readdirSync(root, { recursive: true }).sort()).toEqual(['run', 'run/multus', 'var', 'var/file', 'var/lib'])
  expect(hostPathFindings(root, ['/var/file', '/var/file/x', '/run'])).toEqual([
    { code: 'host-path', args: ['/var/file', 'ENOTDIR'] },
    { code: 'host-path', args: ['/var/file/x', 'ENOTDIR'] },
  ])
})

// SPDX-License-Identifier: Apache-2.0
/** Which cluster may be read and written to. Layer: test. */
import { expect, test } from 'vitest'
import { guardReads, guardWrites } from '../../../cli/cluster/guard.ts'

const US = { version: '3.31.5', allowMismatch: false, isAboutLock: false }
const theirs = (netplaneVersion: string) => ({ ...US, cluster: { netplaneVersion } })

test.each(['v3.31.5', '3.31.5', 'v3.31.5-rc1', 'v3.31.5-4-g0123456'])('%s is the same version', (version) => {
  expect(guardWrites(theirs(version))).toBeUndefined()
})

test.each(['v3.31.4', 'v3.31.15'])('of %s a warning names both', (version) => {
  expect(guardWrites(theirs(version))).toBe(`versions differ: netplanectl is v3.31.5, the cluster ${version}`)
})

test.each(['v3.30.5', 'v3.32.0', 'v3.3.5', 'v4.31.5', 'v2.31.5', 'v3.310.5'])('%s is refused, but for a flag', (version) => {
  expect(() => guardWrites(theirs(version))).toThrow(`netplanectl is v3.31.5, the cluster ${version}`)
  expect(guardWrites({ ...theirs(version), allowMismatch: true })).toBeUndefined()
})

test('a cluster that says no version is written to', () => {
  expect(guardWrites({ ...US, cluster: undefined })).toBeUndefined()
  expect(guardWrites({ ...US, cluster: { datastoreReady: true } })).toBeUndefined()
})

test('a locked one is not, whatever the flags, but for the lock itself', () => {
  const locked = { ...US, allowMismatch: true, cluster: { datastoreReady: false } }
  expect(() => guardWrites(locked)).toThrow('the datastore is locked')
  expect(guardWrites({ ...locked, isAboutLock: true })).toBeUndefined()
})

test.each(['v3.32.0', 'v3.100.0', 'v4.0.0'])('%s is not read by an older program, but for a flag', (version) => {
  expect(() => guardReads(theirs(version))).toThrow(`version mismatch: netplanectl is v3.31.5, the cluster ${version}`)
  expect(guardReads({ ...theirs(version), allowMismatch: true })).toBeUndefined()
})

test.each(['v3.31.4', 'v3.31.6', 'v3.30.9', 'v3.4.0', 'v2.99.0'])('%s is read, with a warning', (version) => {
  expect(guardReads(theirs(version))).toBe(`versions differ: netplanectl is v3.31.5, the cluster ${version}`)
})

test('a cluster of the same version, a locked one, and one that says nothing are read without a word', () => {
  for (const cluster of [{ netplaneVersion: 'v3.31.5' }, { datastoreReady: false }, undefined])
    expect(guardReads({ ...US, cluster })).toBeUndefined()
})

// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { missingPrivileges } from '#agent/node/privileges.ts'

const NEEDS = 'needs root (or CAP_BPF, CAP_NET_ADMIN)'

test.each([
  ['root', 0, '0000000000000000', undefined],
  ['nobody', 65534, '0000000000000000', NEEDS],
  ['CAP_BPF and CAP_NET_ADMIN', 1000, '0000008000001000', undefined],
  ['CAP_SYS_ADMIN and CAP_NET_ADMIN', 1000, '0000000000201000', undefined],
  ['CAP_BPF alone', 1000, '0000008000000000', NEEDS],
  ['CAP_NET_ADMIN alone', 1000, '0000000000001000', NEEDS],
])('%s', (...[, uid, effective, expected]) => {
  const status = `Name:\tnode\nCapPrm:\t000001ffffffffff\nCapEff:\t${effective}\nCapBnd:\t000001ffffffffff\n`
  expect(missingPrivileges(uid, status)).toBe(expected)
})

test('a status that says nothing grants nothing', () => {
  expect(missingPrivileges(1000, '')).toBe(NEEDS)
})

// SPDX-License-Identifier: Apache-2.0
/** Servers that are too old for our kinds. Layer: test. */
import { expect, test } from 'vitest'
import { isOldServer } from '#lib/preflight/oldest-server.ts'

test.each([
  ['v1.30.14', true],
  ['v1.9.0', true],
  ['v1.31.0', false],
  ['v1.31.2-eks-1', false],
  ['v2.0.0', false],
  ['', true],
])('a server that says %j is too old: %s', (version, isOld) => {
  expect(isOldServer(version)).toBe(isOld)
})

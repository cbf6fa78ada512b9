// SPDX-License-Identifier: Apache-2.0
/** Versions in text. Layer: test. */
import { expect, test } from 'vitest'
import { compareVersions, parseVersion, versionText } from '#lib/base/text/version.ts'

test.each([
  ['v1.34.1', '1.34.1'],
  ['3.27', '3.27.0'],
  ['v1.29.4-eks-036c24b', '1.29.4'],
  ['v1.31.2+k3s1', '1.31.2'],
  ['latest', undefined],
  ['', undefined],
  ['v3', undefined],
  ['3.27.0.1', undefined],
  ['release-v3.27', undefined],
])('%j is version %s', (text, version) => {
  const read = parseVersion(text)
  expect(read && versionText(read)).toBe(version)
})

test('versions are compared by their numbers, not as text', () => {
  expect(compareVersions([3, 4, 10], [3, 4, 9])).toBeGreaterThan(0)
  expect(compareVersions([2, 31, 5], [3, 4, 9])).toBeLessThan(0)
  expect(compareVersions([3, 30, 0], [3, 30, 0])).toBe(0)
})

// SPDX-License-Identifier: Apache-2.0
/** Which kernels are too old by their names. Layer: test. */
import { expect, test } from 'vitest'
import { isOldKernel } from '#lib/base/os/oldest-kernel.ts'

test.each([
  ['4.15.0-213-generic', true],
  ['4.18.0-147.el8.x86_64', true],
  ['4.18.0-193.el8.x86_64', false],
  ['4.18.0-553.22.1.el8_10.x86_64', false],
  ['4.18.0-25-generic', true],
  ['5.2.21', true],
  ['5.3.0-76-generic', false],
  ['5.10.0-32-amd64', false],
  ['6.18.0-test', false],
  ['something else', false],
])('kernel %s is too old: %s', (kernel, expected) => {
  expect(isOldKernel(kernel)).toBe(expected)
})

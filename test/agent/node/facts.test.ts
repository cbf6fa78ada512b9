// SPDX-License-Identifier: Apache-2.0
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot, packageVersion } from '#lib/base/os/package.ts'
import { countsMemlock, isRealtime, packageObjects, tooOld, unsafeKernel } from '#agent/node/facts.ts'

const [ON, OFF] = ['CONFIG_PREEMPT_RT_NEEDS_BH_LOCK=y\n', '# CONFIG_PREEMPT_RT_NEEDS_BH_LOCK is not set\n']

test.each([
  ['7.3.4+deb13-rt-amd64', undefined, true],
  ['7.3.4+deb13-rt-amd64', ON, false],
  ['7.3.4+deb13-rt-amd64', OFF, true],
  ['6.12.0-100.rt.el10', OFF, true],
  ['6.12.0-100.rt.el10', 'CONFIG_PREEMPT_RT=y\n', false],
  ['6.1.0-50-rt-amd64', undefined, false],
  ['6.18.0-rt1', undefined, true],
  ['something else', undefined, true],
])('real-time kernel %s with the configuration %j lets packets interrupt one another: %s', (kernel, config, expected) => {
  expect(unsafeKernel(kernel, { is: true, config })?.includes('real-time')).toBe(expected || undefined)
  expect(unsafeKernel(kernel, { is: false, config })).toBeUndefined()
})

test.each([
  ['#1 SMP PREEMPT_RT Debian 7.3.4-1~bpo13+1 (2026-11-15)', undefined, true],
  ['#1 SMP PREEMPT RT Thu Jan 1', undefined, true],
  ['#1 SMP', '1\n', true],
  ['#1 SMP PREEMPT_DYNAMIC Debian 7.3.4-1~bpo13+1 (2026-11-15)', undefined, false],
  ['#1 SMP PREEMPT', '0\n', false],
])('a kernel that calls itself "%s", with %j in its file, is a real-time one: %s', (text, file, expected) => {
  expect(isRealtime(text, file)).toBe(expected)
})

test('a kernel that is too old is named with what is needed, and what it refused', () => {
  expect(tooOld('Invalid argument', '4.15.0-213-generic')).toMatch(/^4\.15\.0-213-generic is older than .*5\.3.*: Invalid argument$/)
})

test.each([
  ['5.10.0-32-amd64', true],
  ['5.11.0', false],
  ['6.1.0-50-amd64', false],
  ['something else', false],
])('kernel %s counts maps as locked memory: %s', (kernel, expected) => {
  expect(countsMemlock(kernel)).toBe(expected)
})

test('the package is found from inside it', () => {
  expect(existsSync(join(packageRoot(), 'package.json'))).toBe(true)
  expect(packageVersion()).toMatch(/^\d+\.\d+\.\d+/)
  expect(packageObjects()).toBe(join(packageRoot(), 'bpf'))
})

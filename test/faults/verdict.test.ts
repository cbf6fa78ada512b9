// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { verdictOf } from './verdict.ts'

const fault = { stage: 'kernel', test: 'test/kernel/packets.test.ts' }
const red = (name: string): string => `dots\n\nfailed:\n  kernel: ${name} > a case\n    was dropped\n3 passed, 1 failed, 0 skipped\n`

test('a fault is found when the list of failures names the stage and the test file', () => {
  expect(verdictOf(fault, { status: 1, output: red('test/kernel/packets.test.ts') })).toBe('found')
  expect(verdictOf({ stage: 'kernel' }, { status: 1, output: red('x.ts') })).toBe('found')
})

test('a red run that names another file has not found the fault', () => {
  expect(verdictOf(fault, { status: 1, output: red('test/kernel/frames.test.ts') })).toBe('elsewhere')
  expect(verdictOf(fault, { status: 1, output: 'kernel: test/kernel/packets.test.ts\nmake: *** [all]\n' })).toBe('elsewhere')
})

test('a green run has not found the fault, and an unsteady test has hidden it', () => {
  expect(verdictOf(fault, { status: 0, output: '4 passed, 0 failed, 0 skipped\n' })).toBe('not found')
  expect(verdictOf(fault, { status: 0, output: 'unsteady: kernel: test/kernel/packets.test.ts\n4 passed\n' })).toBe('unsteady')
})

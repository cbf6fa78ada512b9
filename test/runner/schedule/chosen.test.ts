// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { chosenOf } from './chosen.ts'
import type { Part, Stage } from '../stages.ts'

const nothing: Part = () => Promise.resolve({ passed: 1, failed: 0, skipped: 0, failures: [] })
const run = (): Part => nothing
const stages: readonly Stage[] = [
  { name: 'kernel', files: { names: ['test/kernel/a.test.ts', 'test/kernel/b.test.ts'], run }, again: run },
  { name: 'unit', parts: [nothing], again: run },
  { name: 'lint', parts: [nothing] },
  { name: 'soak', part: 'soak', parts: [nothing] },
  { name: 'slow', part: 'bench', parts: [nothing] },
]
const names = (...words: readonly string[]): readonly string[] => chosenOf(stages, words).chosen.map(({ name }) => name)

test('the gate is all that is of no part', () => {
  expect(names()).toEqual(['kernel', 'unit', 'lint'])
  expect(names('all')).toEqual(['kernel', 'unit', 'lint', 'soak', 'slow'])
})

test('a part is its stages, and the run is known as that part', () => {
  expect(chosenOf(stages, ['part', 'bench'])).toMatchObject({ chosen: [{ name: 'slow' }], part: 'bench' })
  expect(() => chosenOf(stages, ['part', 'toys'])).toThrow('no such part; there are soak')
})

test('stages come by name, and one that is not there is refused', () => {
  expect(names('unit', 'soak')).toEqual(['unit', 'soak'])
  expect(() => chosenOf(stages, ['unit', 'toys'])).toThrow('no such stage')
  expect(() => chosenOf(stages, ['test/kernel/a.test.ts'])).toThrow('no such stage')
})

test('of a stage only the named files run, each by itself', () => {
  const [kernel] = chosenOf(stages, ['kernel', 'test/kernel/b.test.ts']).chosen
  expect(kernel).toMatchObject({ name: 'kernel', parts: [nothing] })
  expect(kernel?.files).toBeUndefined()
  expect(() => chosenOf(stages, ['kernel', 'test/kernel/c.test.ts'])).toThrow('a file of none of these stages')
  expect(() => chosenOf(stages, ['lint', 'test/kernel/b.test.ts'])).toThrow('lint runs no file by itself')
})

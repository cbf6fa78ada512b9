// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FAULTS } from './faults.ts'

test.each(FAULTS.map((fault) => [fault.name, fault] as const))('the fault can be made: %s', (_, { file, from, to, test: finder }) => {
  expect(readFileSync(file, 'utf8').split(from).length - 1).toBe(1)
  expect(to).not.toBe(from)
  if (finder !== undefined) expect(existsSync(finder)).toBe(true)
})

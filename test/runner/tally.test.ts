// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { isSteady, tallyOf, disturbancesOf, type Run } from './tally.ts'

const passed = (name: string): Run['tests'][number] => ({ name, error: undefined })
const failed = (name: string, error: string): Run['tests'][number] => ({ name, error })

test('a third of the runs is disturbed in each way; a real cluster knows one way', () => {
  expect(disturbancesOf(5, 'lab')).toEqual(['busy', 'busy', 'slow', 'slow', 'halting'])
  const counts = ['busy', 'slow', 'halting'].map((way) => disturbancesOf(20, 'unit').filter((one) => one === way).length)
  expect(counts).toEqual([7, 7, 6])
  expect(disturbancesOf(3, 'e2e')).toEqual(['busy', 'busy', 'busy'])
})

test('each test has the count of its passes, and its first error; those with failures come last', () => {
  const runs: readonly Run[] = [
    { way: 'busy', tests: [failed('b', 'late'), passed('a')] },
    { way: 'slow', tests: [passed('b'), passed('a')] },
    { way: 'halting', tests: [failed('b', 'lost\n    again'), passed('a')] },
  ]
  expect(tallyOf(runs)).toEqual(['3/3 a', '1/3 b\n    busy: late'])
  expect(isSteady(runs)).toBe(false)
})

test('a run without a test that others had is no pass of it', () => {
  const whole: Run = { way: 'busy', tests: [passed('a'), passed('b')] }
  expect(isSteady([whole, whole])).toBe(true)
  const runs: readonly Run[] = [whole, { way: 'slow', tests: [passed('a')] }]
  expect(tallyOf(runs)).toEqual(['2/2 a', '1/2 b'])
  expect(isSteady(runs)).toBe(false)
  expect(isSteady([whole, { way: 'slow', tests: [] }])).toBe(false)
})

test('tests of one name are one, which fails with either of them', () => {
  const run: Run = { way: 'busy', tests: [passed('a'), failed('a', 'late')] }
  expect(tallyOf([run])).toEqual(['0/1 a\n    busy: late'])
  expect(isSteady([{ way: 'busy', tests: [passed('a'), passed('a')] }])).toBe(true)
})

test('runs of nothing are not steady', () => {
  expect([isSteady([]), isSteady([{ way: 'busy', tests: [] }])]).toEqual([false, false])
})

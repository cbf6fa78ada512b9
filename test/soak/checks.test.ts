// SPDX-License-Identifier: Apache-2.0
/** What counts as a leak. */
import { expect, test } from 'vitest'
import { changes, holdingsCheck } from '../../soak/checks.ts'

test('changes are lines that came and went, each as often as it did', () => {
  expect(changes('a', ['x', 'y', 'y'], ['y', 'y', 'x'])).toEqual([])
  expect(changes('a', ['x', 'y', 'y'], ['y', 'z'])).toEqual(['a: - x', 'a: - y', 'a: + z'])
})

test('an agent holds as much as a fresh one, but for garbage', () => {
  const fresh = { descriptors: 70, residentMb: 100 }
  const faults = (...samples: number[][]): readonly string[] =>
    holdingsCheck(
      'a',
      samples.map(([descriptors = 0, residentMb = 0]) => ({ descriptors, residentMb })),
      fresh,
    ).faults
  expect(faults([70, 500], [70, 500], [70, 500], [70, 350])).toEqual([])
  expect(faults([70, 100], [70, 100], [70, 380], [70, 360])).toEqual(['residentMb: 360, of a fresh agent 100'])
  expect(faults([90, 100])).toEqual(['descriptors: 90, of a fresh agent 70'])
})

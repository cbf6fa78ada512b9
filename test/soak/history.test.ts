// SPDX-License-Identifier: Apache-2.0
/** Which step it was. */
import { expect, test } from 'vitest'
import { History } from '../../soak/history.ts'
import type { Step } from '../../soak/changes/steps.ts'

test('a history has the last step before a time', () => {
  const history = new History<Step>()
  history.add({ kind: 'kill', node: 'a', back: 1 })
  history.add({ kind: 'move', to: 'b-3' })
  expect(history.count).toBe(2)
  expect(history.summary()).toBe('kill 1, move 1')
  expect(history.at(0)).toBe('no step')
  expect(history.at(Date.now() + 1000)).toMatch(/^step 2 at .*: {"kind":"move","to":"b-3"}$/)
  expect(history.last(1)).toHaveLength(1)
})

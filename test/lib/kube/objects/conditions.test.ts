// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { conditionEntry, findCondition, saysTheSame, type Condition } from '#lib/kube/objects/conditions.ts'

const TYPE = 'NetworkUnavailable'
const UP: Condition = { status: 'False', reason: 'Up', message: 'is up' }

test('a condition is found among others, or not', () => {
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: TYPE, ...UP, lastTransitionTime: 't' },
  ]
  expect(findCondition({ status: { conditions } }, TYPE)).toEqual({ ...UP, since: 't' })
  for (const object of [{}, { status: 1 }, { status: { conditions: [] } }, { status: { conditions: [null] } }])
    expect(findCondition(object, TYPE)).toBeUndefined()
})

test('a condition says the same when status, reason and message are equal', () => {
  expect(saysTheSame({ ...UP }, UP)).toBe(true)
  for (const other of [undefined, { ...UP, status: 'True' }, { ...UP, reason: '' }, { ...UP, message: '' }])
    expect(saysTheSame(other, UP)).toBe(false)
})

test('other words are no change of the status', () => {
  const entry = (found: Parameters<typeof conditionEntry>[0]['found']) =>
    conditionEntry({ type: TYPE, condition: UP, found, now: 'now' })['lastTransitionTime']
  expect([
    entry({ ...UP, message: 'x', since: 'then' }),
    entry({ ...UP, status: 'True', since: 'then' }),
    entry({ ...UP, since: '' }),
    entry(undefined),
  ]).toEqual(['then', 'now', 'now', 'now'])
})

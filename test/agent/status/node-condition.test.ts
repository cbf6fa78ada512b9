// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { GRACE_MS, wantedCondition } from '#agent/status/node-condition.ts'

const WRONG = ['dataplane.programs: E2BIG']

test('a node that is ready is up', () => {
  expect(wantedCondition({ unready: [], sinceMs: 0, wasReady: true })).toMatchObject({ status: 'False', reason: 'NetplaneIsUp' })
})

test('a start, and a failure that mends itself, change nothing', () => {
  for (const wasReady of [true, false]) expect(wantedCondition({ unready: WRONG, sinceMs: GRACE_MS - 1, wasReady })).toBeUndefined()
})

test('a node that was never ready has no network, and says why', () => {
  expect(wantedCondition({ unready: WRONG, sinceMs: GRACE_MS, wasReady: false })).toEqual({
    status: 'True',
    reason: 'NetplaneIsNotReady',
    message: 'dataplane.programs: E2BIG',
  })
})

test('a later failure does not mark the network unavailable, and the message names it', () => {
  expect(wantedCondition({ unready: WRONG, sinceMs: GRACE_MS, wasReady: true })).toEqual({
    status: 'False',
    reason: 'NetplaneIsDegraded',
    message: 'dataplane.programs: E2BIG',
  })
})

test('a message is short, however much is wrong', () => {
  const unready = Array.from({ length: 50 }, (_, at) => `part-${at}: ${'x'.repeat(500)}`)
  expect(wantedCondition({ unready, sinceMs: GRACE_MS, wasReady: true })?.message.length).toBeLessThanOrEqual(1000)
})

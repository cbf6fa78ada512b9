// SPDX-License-Identifier: Apache-2.0
/** Conditions of a NetplaneStatus: what they say, of which generation, since when. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { saysConditions, statusConditions } from '#operator/status/conditions.ts'

const EARLY = '2026-11-26T08:00:00Z'
const LATE = '2026-11-26T09:00:00Z'
const WAITS = { reason: 'RollingOut', message: '1 of 2' }

function foundWith(conditions: readonly object[]): ApiObject {
  return asApiObject({
    ...{ apiVersion: 'operator.netplane.io/v1', kind: 'NetplaneStatus', metadata: { name: 'network' } },
    status: { conditions },
  })
}

test('each of the three types says something, of the generation that it is about', () => {
  const conditions = statusConditions({ state: {}, generation: 7, found: undefined, now: EARLY })
  expect(conditions.map(({ type, status }) => `${type}=${status}`)).toEqual(['Available=True', 'Progressing=False', 'Degraded=False'])
  expect(conditions.every(({ observedGeneration, lastTransitionTime }) => observedGeneration === 7 && lastTransitionTime === EARLY)).toBe(
    true,
  )
})

test('the time of the last change stays while only the message changes', () => {
  const before = statusConditions({ state: { unavailable: WAITS }, generation: 1, found: undefined, now: EARLY })
  const state = { unavailable: { ...WAITS, message: '2 of 2' } }
  const after = statusConditions({ state, generation: 2, found: foundWith(before), now: LATE })
  expect(after.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([EARLY, EARLY, EARLY])
  const done = statusConditions({ state: {}, generation: 2, found: foundWith(before), now: LATE })
  expect(done.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([LATE, EARLY, EARLY])
})

test('what stands there already is not written again', () => {
  const conditions = statusConditions({ state: {}, generation: 1, found: undefined, now: EARLY })
  expect(saysConditions(foundWith(conditions), conditions)).toBe(true)
  expect(saysConditions(foundWith(conditions.slice(1)), conditions)).toBe(false)
  expect(saysConditions(foundWith(conditions), statusConditions({ state: {}, generation: 2, found: undefined, now: EARLY }))).toBe(false)
  expect(saysConditions(undefined, conditions)).toBe(false)
})

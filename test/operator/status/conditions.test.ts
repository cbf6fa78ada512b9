// SPDX-License-Identifier: Apache-2.0
/** Conditions of a NetplaneStatus: what they say, of which generation, since when. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Component } from '#lib/kube/operator-resources.ts'
import { degradedConditions, saysConditions, shownMessage, stateOfAll, statusConditions } from '#operator/status/conditions.ts'
import type { ComponentState } from '#lib/control/rollout.ts'

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

test('a component that waits for people does not progress, by the reason that keeps it', () => {
  const blocked = { reason: 'Blocked', message: 'a: no' }
  const progressing = (state: ComponentState): string | undefined =>
    statusConditions({ state, generation: 1, found: undefined, now: EARLY }).find(({ type }) => type === 'Progressing')?.reason
  expect(progressing({ unavailable: blocked, degraded: blocked })).toBe('Blocked')
  expect(progressing({ degraded: blocked })).toBe('Blocked')
  expect(progressing({})).toBe('AllReady')
})

test('the time of the last change stays while only the message changes', () => {
  const before = statusConditions({ state: { unavailable: WAITS }, generation: 1, found: undefined, now: EARLY })
  const state = { unavailable: { ...WAITS, message: '2 of 2' } }
  const after = statusConditions({ state, generation: 2, found: foundWith(before), now: LATE })
  expect(after.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([EARLY, EARLY, EARLY])
  const done = statusConditions({ state: {}, generation: 2, found: foundWith(before), now: LATE })
  expect(done.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([LATE, EARLY, EARLY])
})

test('a refusal degrades, and says nothing of the rest', () => {
  const cause = { reason: 'Refused', message: 'services is forbidden' }
  const refused = { reason: 'Refused', observedGeneration: 2, lastTransitionTime: LATE }
  const before = statusConditions({ state: { progressing: WAITS }, generation: 1, found: undefined, now: EARLY })
  const after = degradedConditions(cause, { generation: 2, found: foundWith(before), now: LATE })
  expect(after.slice(0, 2)).toEqual(before.slice(0, 2))
  expect(after[2]).toEqual({ type: 'Degraded', status: 'True', message: cause.message, ...refused })
  expect(degradedConditions(cause, { generation: 2, found: undefined, now: LATE })).toMatchObject([
    { type: 'Available', status: 'False', ...refused },
    { type: 'Progressing', status: 'False' },
    { type: 'Degraded', status: 'True', ...refused },
  ])
})

test('what stands there already is not written again', () => {
  const conditions = statusConditions({ state: {}, generation: 1, found: undefined, now: EARLY })
  expect(saysConditions(foundWith(conditions), conditions)).toBe(true)
  expect(saysConditions(foundWith(conditions.slice(1)), conditions)).toBe(false)
  expect(saysConditions(foundWith(conditions), statusConditions({ state: {}, generation: 2, found: undefined, now: EARLY }))).toBe(false)
  expect(saysConditions(undefined, conditions)).toBe(false)
})

test('an Installation lacks what one of its components lacks, the network first', () => {
  const [a, b] = [
    { reason: 'RollingOut', message: 'a' },
    { reason: 'Wave', message: 'b' },
  ]
  expect(stateOfAll(new Map([['network', { available: a }]]))).toEqual({})
  expect(
    stateOfAll(
      new Map([
        ['services', { unavailable: b, degraded: b }],
        ['network', { unavailable: a }],
      ] as const),
    ),
  ).toEqual({
    unavailable: a,
    degraded: b,
  })
  expect(stateOfAll(new Map([['preflight', { unavailable: a }]]))).toEqual({})
})

test('what is to be known beside is told with Available, of an Installation as of its component', () => {
  const said = (state: ComponentState): readonly string[] =>
    statusConditions({ state, generation: 1, found: undefined, now: EARLY }).map(({ status, message }) => `${status} ${message}`)
  const notes = ['canary: x is no node']
  expect(said({ available: WAITS, notes })).toEqual(['True 1 of 2; canary: x is no node', 'False ', 'False '])
  expect(said({ unavailable: WAITS, notes })[0]).toBe('False 1 of 2; canary: x is no node')
  expect(stateOfAll(new Map([['services', { available: WAITS, notes }]]))).toEqual({ notes })
})

test('an Installation that waits for the preflight says what the preflight says', () => {
  const asking = { reason: 'Asking', message: '1 nodes have answered; waiting for b' }
  const blocked = { reason: 'Blocked', message: 'a: what is in the way; what to do' }
  const waits = { reason: 'Preflight', message: 'nothing is changed' }
  const waiting = { unavailable: waits, progressing: waits }
  const all = (preflight: ComponentState, network: ComponentState = waiting): ComponentState =>
    stateOfAll(
      new Map<Component, ComponentState>([
        ['preflight', preflight],
        ['network', network],
        ['services', waiting],
      ]),
    )
  expect(all({ unavailable: asking, progressing: asking })).toEqual({ unavailable: asking, progressing: asking })
  expect(all({ unavailable: blocked, degraded: blocked })).toEqual({ unavailable: blocked, progressing: waits, degraded: blocked })
  // before a switch the network is there
  expect(all({ unavailable: blocked, degraded: blocked }, {})).toEqual({ unavailable: blocked, progressing: waits, degraded: blocked })
  const missing = { reason: 'PullSecretMissing', message: 'no secret' }
  expect(all({ unavailable: blocked, degraded: blocked }, { ...waiting, degraded: missing })).toMatchObject({ degraded: missing })
  expect(all({ available: asking })).toEqual(waiting)
})

test.each([
  ['what is degraded, though all is available', { degraded: WAITS }, WAITS.message],
  ['why it is not available', { unavailable: WAITS }, WAITS.message],
  ['how it is available', { available: { reason: 'Serving', message: 'on 2 nodes' }, progressing: WAITS }, 'on 2 nodes'],
])('a reader of all statuses sees %s', (_, state, message) => {
  expect(shownMessage(statusConditions({ state, generation: 1, found: undefined, now: EARLY }))).toBe(message)
})

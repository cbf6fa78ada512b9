// SPDX-License-Identifier: Apache-2.0
/** What happens in a soak comes from the seed alone, and never breaks a promise by itself. */
import { expect, test } from 'vitest'
import { ANCHORS, SERVICE } from '../../../soak/cluster.ts'
import { ALL_TRUE, TRUTHS, type Truth } from '../../../soak/marks/marked-flows.ts'
import { TURNED_BY } from '../../../soak/changes/policies.ts'
import { Plan, type Step } from '../../../soak/changes/steps.ts'
import type { EndpointSpec } from '../../../testkit/lab/manifests.ts'

function steps(seed: number, count = 1000): Step[] {
  const plan = new Plan(seed)
  return Array.from({ length: count }, () => {
    plan.pause()
    return plan.next()
  })
}

test('one seed has one sequence, another another', () => {
  expect(steps(5)).toEqual(steps(5))
  expect(steps(5)).not.toEqual(steps(6))
})

test('everything happens', () => {
  const kinds = new Set(steps(5).map(({ kind }) => kind))
  expect([...kinds].sort()).toEqual([
    'configuration',
    'kill',
    'labels',
    'move',
    'no-service',
    'others',
    'policies',
    'service',
    'sets',
    'visitors',
  ])
})

test('the agent that is watched is never killed', () => {
  const { survivor } = new Plan(5)
  const killed = steps(5).flatMap((step) => (step.kind === 'kill' ? [step.node] : []))
  expect(killed).not.toContain(survivor)
  expect(new Set(killed).size).toBe(2)
})

test('the moving service goes elsewhere each time', () => {
  const moves = steps(5).flatMap((step) => (step.kind === 'move' ? [step.to] : []))
  expect(moves.length).toBeGreaterThan(20)
  for (const [at, to] of moves.entries()) expect(to).not.toBe(moves[at - 1])
})

test('every first endpoint of the calm service serves all the time', () => {
  const serves = (endpoint: EndpointSpec): boolean => typeof endpoint === 'string' || endpoint.serving === true
  const changes = steps(5).flatMap((step) => (step.kind === 'service' && step.index === SERVICE.calm ? [step.change] : []))
  expect(changes.length).toBeGreaterThan(50)
  for (const { slices = [], type, families, ports = [] } of changes) {
    expect([type, families]).toEqual([undefined, undefined])
    expect(ports.map(({ port }) => port)).toContain(80)
    const serving = slices.flatMap(({ endpoints }) => endpoints.filter(serves)).map((one) => (typeof one === 'string' ? one : one.pod))
    for (const pod of ANCHORS) expect(serving).toContain(pod)
  }
})

test('no service asks for a node port twice', () => {
  const asked = Array.from({ length: 20 }, (_, seed) => steps(seed)).flatMap((all) =>
    all.flatMap((step) =>
      step.kind === 'service'
        ? [(step.change.ports ?? []).flatMap(({ protocol, nodePort }) => (nodePort === undefined ? [] : `${protocol} ${nodePort}`))]
        : [],
    ),
  )
  expect(asked.filter((ports) => ports.length > 1).length).toBeGreaterThan(50)
  expect(asked.filter((ports) => new Set(ports).size < ports.length)).toEqual([])
})

test('each truth of marked flows turns by steps of its own kind only', () => {
  let before = ALL_TRUE
  const turned = new Map<Truth, number>()
  for (const step of steps(5)) {
    if (!('truths' in step)) continue
    for (const truth of TRUTHS) {
      if (step.truths[truth] === before[truth]) continue
      expect(step.kind).toBe(TURNED_BY[truth])
      turned.set(truth, (turned.get(truth) ?? 0) + 1)
    }
    before = step.truths
  }
  for (const truth of TRUTHS) expect(turned.get(truth)).toBeGreaterThan(10)
})

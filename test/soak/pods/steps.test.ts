// SPDX-License-Identifier: Apache-2.0
/** What happens to pods comes from the seed alone, and takes nothing from a pod that was promised something. */
import { expect, test } from 'vitest'
import { ANCHORS } from '../../../soak/cluster.ts'
import { PodPlan, type PodStep, type Visitor } from '../../../soak/pods/steps.ts'

function steps(seed: number, count = 2000): PodStep[] {
  const plan = new PodPlan(seed)
  return Array.from({ length: count }, () => {
    plan.pause()
    return plan.next()
  })
}

function comers(all: readonly PodStep[]): Visitor[] {
  return all.flatMap((step) => (step.kind === 'come' ? step.pods : step.kind === 'replace' ? [step.pod] : []))
}

test('one seed has one sequence, another another', () => {
  expect(steps(5)).toEqual(steps(5))
  expect(steps(5)).not.toEqual(steps(6))
})

test('everything happens, and to every kind of call', () => {
  const all = steps(5)
  const kinds = ['agent', 'come', 'gc', 'go', 'policies', 'replace', 'server', 'service', 'store']
  expect([...new Set(all.map(({ kind }) => kind))].sort()).toEqual(kinds)
  for (const which of ['adds', 'dels'] as const) {
    const cuts = comers(all).flatMap((visitor) => visitor[which].flatMap((cut) => cut?.who ?? []))
    expect([...new Set(cuts)].sort()).toEqual(['agent', 'shim'])
  }
  expect([...new Set(comers(all).map(({ then }) => then))].sort()).toEqual(['again', 'another', 'another-first'])
})

test('the agent that is watched is never killed, by no step and in no call', () => {
  const { survivor } = new PodPlan(5)
  const all = steps(5)
  const cut = comers(all).filter(({ adds, dels }) => [...adds, ...dels].some((one) => one?.who === 'agent'))
  const killed = [...all.flatMap((step) => (step.kind === 'agent' ? [step.node] : [])), ...cut.map(({ node }) => node)]
  expect([...new Set(killed)].sort()).toEqual(['a', 'b', 'c'].filter((node) => node !== survivor))
})

test('only pods that are there go or are replaced, and in the end none is left', () => {
  const plan = new PodPlan(7)
  const there = new Set<string>()
  const follow = (step: PodStep): void => {
    if (step.kind === 'come') for (const { name } of step.pods) expect(there.has(name) ? name : there.add(name).size).toBeTypeOf('number')
    if (step.kind === 'go') for (const name of step.pods) expect(there.delete(name)).toBe(true)
    if (step.kind === 'replace') expect(there.has(step.pod.name)).toBe(true)
  }
  for (let count = 0; count < 500; count++) follow(plan.next())
  expect(there.size).toBeGreaterThan(0)
  for (const step of plan.last()) follow(step)
  expect(there.size).toBe(0)
})

test('the endpoints of the service serve all the time', () => {
  const changes = steps(5).flatMap((step) => (step.kind === 'service' ? [step.change] : []))
  expect(changes.length).toBeGreaterThan(50)
  for (const { endpoints = [] } of changes)
    expect(endpoints.map((one) => (typeof one === 'string' ? one : one.serving === true && one.pod))).toEqual(ANCHORS)
})

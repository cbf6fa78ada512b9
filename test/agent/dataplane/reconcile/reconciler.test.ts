// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog, type Log } from '#lib/obs/log.ts'
import { failure, type Outcome, type ReconcileStep } from '#agent/dataplane/reconcile/step.ts'
import { Reconciler } from '#agent/dataplane/reconcile/reconciler.ts'

/** A part whose work and failures a test sets. */
class FakePart implements ReconcileStep {
  work = 0
  failing: string[] = []
  undone = false
  readonly name: string
  readonly #order: string[]

  constructor(name: string, order: string[]) {
    this.name = name
    this.#order = order
  }

  pending(): boolean {
    return this.undone || this.work + this.failing.length > 0
  }

  apply(): Outcome {
    this.#order.push(this.name)
    const done = this.work
    this.work = 0
    return { done, undone: this.undone, failures: this.failing.map((item) => failure(item, new Error('refused'))) }
  }
}

function setup(needs: readonly string[] = []) {
  const order: string[] = []
  const [rows, hooks, routes] = [new FakePart('rows', order), new FakePart('hooks', order), new FakePart('routes', order)]
  const health = new Health(() => 0)
  const said: string[] = []
  const log: Log = {
    ...silentLog,
    error: (fields, event) => said.push(`${event} ${String(fields['part'])}`),
    info: (fields, event) => said.push(`${event} ${String(fields['part'])}`),
  }
  const phases = new Reconciler({ phases: [{ part: rows }, { part: hooks, needs }, { part: routes }], log, health })
  return { order, rows, hooks, routes, health, said, phases }
}

describe('one pass', () => {
  test('runs what is pending, in order, and counts', () => {
    const { order, rows, routes, phases } = setup()
    rows.work = 3
    routes.work = 1
    expect(phases.run()).toEqual({
      done: new Map([
        ['rows', 3],
        ['routes', 1],
      ]),
      retryMs: undefined,
    })
    expect(order).toEqual(['rows', 'routes'])
    expect(phases.totals.get('rows')).toEqual({ done: 3, failed: 0 })
  })

  test('with nothing pending does nothing', () => {
    const { order, phases } = setup()
    expect(phases.run()).toEqual({ done: new Map(), retryMs: undefined })
    expect(order).toEqual([])
  })

  test('a failure holds up only what needs it', () => {
    const { order, rows, hooks, routes, phases } = setup(['rows'])
    rows.failing = ['10.0.0.1']
    hooks.work = 1
    routes.work = 1
    expect(phases.run().retryMs).toBe(100)
    expect(order).toEqual(['rows', 'routes'])
    rows.failing = []
    rows.work = 1
    expect(phases.run().retryMs).toBeUndefined()
    expect(hooks.work).toBe(0)
  })

  test('what is undone for a reason of another part holds up what needs it', () => {
    const { order, rows, hooks, routes, phases } = setup(['rows'])
    for (const part of [rows, hooks, routes]) part.work = 1
    rows.undone = true
    expect(phases.run().retryMs).toBe(100)
    expect(order).toEqual(['rows', 'routes'])
    rows.undone = false
    expect(phases.run()).toEqual({ done: new Map([['hooks', 1]]), retryMs: undefined })
  })

  test('backs off after each failure, up to half a minute, and begins again after success', () => {
    const { rows, phases } = setup()
    rows.failing = ['10.0.0.1']
    expect([1, 2, 3].map(() => phases.run().retryMs)).toEqual([100, 200, 400])
    for (let attempt = 0; attempt < 20; attempt++) phases.run()
    expect(phases.run().retryMs).toBe(30_000)
    rows.failing = []
    phases.run()
    rows.failing = ['10.0.0.1']
    expect(phases.run().retryMs).toBe(100)
  })
})

test('a failure is a condition of its own, logged once, and taken back', () => {
  const { rows, hooks, health, said, phases } = setup()
  rows.failing = Array.from({ length: 8 }, (_, at) => `row ${at}`)
  phases.run()
  phases.run()
  hooks.work = 1
  phases.run()
  const reason = 'row 0: refused; row 1: refused; row 2: refused; row 3: refused; row 4: refused and 3 more'
  expect(health.report()).toMatchObject({
    ready: false,
    conditions: [
      { name: 'dataplane.hooks', ok: true },
      { name: 'dataplane.routes', ok: true },
      { name: 'dataplane.rows', ok: false, reason },
    ],
  })
  rows.failing = []
  phases.run()
  expect(health.report().ready).toBe(true)
  expect(said).toEqual(['apply.failed rows', 'apply.recovered rows'])
})

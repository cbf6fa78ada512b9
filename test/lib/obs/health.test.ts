// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'

function health() {
  const time = { now: 1000 }
  return { time, health: new Health(() => time.now) }
}

describe('health', () => {
  test('is not ready before every expected condition is set', () => {
    const { health: one } = health()
    one.expect('programs', 'readiness')
    one.expect('moves', 'liveness')
    expect(one.report()).toMatchObject({
      ready: false,
      live: true,
      conditions: [
        { name: 'moves', ok: true },
        { name: 'programs', ok: false, reason: 'starting' },
      ],
    })
    one.pass('programs')
    expect(one.report()).toMatchObject({ ready: true, live: true })
  })

  test('a condition that only informs makes nothing unready', () => {
    const { health: one } = health()
    one.expect('source', 'none')
    one.fail('source', 'gone')
    expect(one.report()).toMatchObject({ ready: true, live: true, conditions: [{ ok: false, reason: 'gone' }] })
  })

  test('what makes a restart useful makes it unready too', () => {
    const { health: one } = health()
    one.expect('moves', 'liveness')
    one.fail('moves', 'stuck')
    expect(one.report()).toMatchObject({ ready: false, live: false })
  })

  test('knows since when, whatever the reason turned into', () => {
    const { health: one, time } = health()
    one.fail('routes', 'first')
    time.now = 2000
    one.fail('routes', 'second')
    expect(one.report().conditions).toEqual([{ name: 'routes', ok: false, reason: 'second', since: 1000 }])
    one.pass('routes')
    expect(one.report().conditions).toEqual([{ name: 'routes', ok: true, reason: '', since: 2000 }])
  })

  test('is steady through a short failure, but not before it was ready, and never when a restart would help', () => {
    const { health: one, time } = health()
    const steady = (): boolean => one.steady(new Set(['programs']), 100)
    one.expect('programs', 'readiness')
    one.fail('other', 'does not matter here')
    expect(steady()).toBe(false)
    one.pass('programs')
    expect(steady()).toBe(true)
    one.fail('programs', 'refused')
    time.now += 99
    expect(steady()).toBe(true)
    time.now += 1
    expect(steady()).toBe(false)
    one.pass('programs')
    one.expect('moves', 'liveness')
    expect(steady()).toBe(true)
    one.fail('moves', 'stuck')
    expect(steady()).toBe(false)
  })
})

// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { setImmediate } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import { Link, type Lost } from '#lib/api/link.ts'
import { FakeClock } from '../../support/fake-clock.ts'

let clock: FakeClock
let link: Link
/** when a connection was made */
let made: number[]
let said: (Lost | undefined)[]
beforeEach(() => {
  clock = new FakeClock()
  made = []
  said = []
  const connect = (): Promise<void> => {
    made.push(clock.now())
    return Promise.resolve()
  }
  const onChange = (): void => {
    said.push(link.lost)
  }
  link = new Link({
    transport: { connect, drop: () => Promise.resolve(), connected: undefined },
    clock,
    backoff: { firstMs: 1000, maxMs: 8000 },
    onChange,
  })
})

/** The connection ends, and there is another. */
async function lose(): Promise<void> {
  const before = made.length
  const restored = link.restored('it ended', new AbortController().signal)
  for (await setImmediate(); made.length === before; await setImmediate()) clock.advance(10)
  await restored
}

test('connections that do not last are made less and less often, and that is said', async () => {
  for (let time = 0; time < 5; time++) await lose()
  const pauses = made.slice(1).map((at, index) => at - (made[index] ?? 0))
  for (const [index, most] of [1000, 2000, 4000, 8000].entries()) {
    expect(pauses[index]).toBeGreaterThanOrEqual(most * 0.75)
    expect(pauses[index]).toBeLessThanOrEqual(most + 10)
  }
  const lost = { reason: 'it ended', since: 1_000_000 }
  expect(said).toEqual([lost, undefined, lost, undefined, lost, undefined])
})

test('one that has lasted is made anew at once', async () => {
  await lose()
  clock.advance(5000)
  await lose()
  expect(made).toEqual([0, 5000])
  expect(said).toEqual([])
})

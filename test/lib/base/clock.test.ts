// SPDX-License-Identifier: Apache-2.0
/** Waiting: by the machine's clock and by the tests' own. Layer: test. */
import { expect, test } from 'vitest'
import { everyMs, restless, systemClock } from '#lib/base/clock.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

test('a sleep ends by time', async () => {
  const before = systemClock.now()
  await systemClock.sleep(5, new AbortController().signal)
  expect(systemClock.now() - before).toBeGreaterThan(3)
})

test('a sleep ends by abortion, with its reason and without a timer', async () => {
  const clock = new FakeClock()
  const controller = new AbortController()
  const sleeping = clock.sleep(1_000, controller.signal)
  expect(clock.pending).toBe(1)
  controller.abort(new Error('enough'))
  await expect(sleeping).rejects.toThrow('enough')
  expect(clock.pending).toBe(0)
  await expect(clock.sleep(1, controller.signal)).rejects.toThrow('enough')
})

test('a timer can be taken back', () => {
  const clock = new FakeClock()
  let ran = 0
  const cancel = clock.after(10, () => ran++)
  clock.after(20, () => ran++)
  cancel()
  clock.advance(30)
  expect(ran).toBe(1)
})

test('sleepers of a restless clock wake when asked to, its timers do not', async () => {
  const clock = new FakeClock()
  const waking = restless(clock)
  const { signal } = new AbortController()
  let ran = 0
  waking.after(1000, () => ran++)
  const all = Promise.all([waking.sleep(600_000, signal), waking.sleep(1_200_000, signal)])
  waking.wake()
  await all
  expect([ran, clock.pending, waking.now(), waking.wall()]).toEqual([0, 1, clock.now(), clock.wall()])
  const next = waking.sleep(500, signal)
  clock.advance(500)
  await next
  clock.advance(500)
  expect([ran, clock.pending]).toEqual([1, 0])
})

test('rounds go on until the end, one at a time', async () => {
  const clock = new FakeClock()
  const controller = new AbortController()
  let rounds = 0
  const run = everyMs(clock, {
    ms: 100,
    signal: controller.signal,
    run: () => {
      if (++rounds === 3) controller.abort()
    },
  })
  while (!controller.signal.aborted) {
    clock.advance(100)
    await Promise.resolve()
  }
  await run
  expect(rounds).toBe(3)
})

// SPDX-License-Identifier: Apache-2.0
/** How often a pass runs that waits for something. Layer: test. */
import { afterEach, expect, test } from 'vitest'
import { PassLoop } from '#lib/control/pass-loop.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

const clock = new FakeClock()
const stop = new AbortController()
let running: Promise<void> | undefined

afterEach(async () => {
  stop.abort()
  await running
})

async function after(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10) {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    clock.advance(Math.min(left, 10))
  }
}

test('one that waits looks every two seconds, seldom once nothing has changed for long, and soon after a change', async () => {
  let passes = 0
  const pass = {
    forget: () => undefined,
    run: () => {
      passes++
      return Promise.resolve(true)
    },
  }
  const health = new Health(() => clock.wall())
  health.expect('synced', 'readiness')
  const loop = new PassLoop({
    ...{ clock, log: silentLog, health, view: { synced: true }, lease: { isHeld: true }, pass },
    onPass: () => undefined,
  })
  running = loop.run(stop.signal)
  const during = async (ms: number): Promise<number> => {
    const before = passes
    await after(ms)
    return passes - before
  }
  expect(await during(60_000)).toBeGreaterThanOrEqual(28)
  await after(70_000)
  expect(await during(60_000)).toBeLessThanOrEqual(6)
  loop.wake()
  expect(await during(1000)).toBe(1)
  expect(await during(20_000)).toBeGreaterThanOrEqual(9)
})

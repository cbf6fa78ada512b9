// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { SuspendDetector, type Absence } from '#agent/watch/suspend-detector.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

/** Ticks as a machine would bring it about: each a second after the last, and then some. */
function watched() {
  const clock = new FakeClock()
  const machine = { suspended: 0, cpu: 0 }
  const heard: Absence[] = []
  const watch = new SuspendDetector({
    clock,
    uptimeMs: () => clock.now() + machine.suspended,
    cpuMs: () => machine.cpu,
    onAwake: (absence) => heard.push(absence),
  })
  const tick = (then: { readonly late?: number; readonly suspended?: number; readonly cpu?: number } = {}): void => {
    clock.advance(1000 + (then.late ?? 0))
    machine.suspended += then.suspended ?? 0
    machine.cpu += then.cpu ?? 0
    watch.tick()
  }
  return { tick, heard, clock, watch }
}

test('ticks that come in time, or somewhat late, are no absence', () => {
  const { tick, heard } = watched()
  for (const late of [0, 30, 4000, 0]) tick({ late })
  expect(heard).toEqual([])
})

test('a process that was stopped learns once for how long', () => {
  const { tick, heard } = watched()
  tick({ late: 30_000, cpu: 2 })
  tick()
  expect(heard).toEqual([{ stoppedMs: 29_998, suspendedMs: 0 }])
})

test('a process that is starved learns of it once a minute, and of all of it', () => {
  const { tick, heard } = watched()
  for (let second = 0; second < 70; second += 10) tick({ late: 9000 })
  expect(heard).toEqual([
    { stoppedMs: 9000, suspendedMs: 0 },
    { stoppedMs: 54_000, suspendedMs: 0 },
  ])
  tick({ late: 9000, suspended: 5000 })
  expect(heard.at(-1)).toEqual({ stoppedMs: 9000, suspendedMs: 5000 })
})

test('a process that was busy was not away', () => {
  const { tick, heard } = watched()
  tick({ late: 9000, cpu: 9000 })
  expect(heard).toEqual([])
})

test('a machine that was suspended has lost no time by its own clock', () => {
  const { tick, heard } = watched()
  tick({ suspended: 7_200_000 })
  tick()
  expect(heard).toEqual([{ stoppedMs: 0, suspendedMs: 7_200_000 }])
})

test('each absence is heard of by itself', async () => {
  const { clock, watch, heard } = watched()
  const stop = new AbortController()
  const running = watch.run(stop.signal)
  clock.advance(1000)
  await Promise.resolve()
  expect(heard).toEqual([])
  stop.abort()
  await running
})

// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { sleepOn, systemClock, type Clock } from '#lib/base/clock.ts'
import { ApplyLoop } from '#agent/dataplane/reconcile/loop.ts'

/** A clock that moves when the test moves it. */
class HandClock implements Clock {
  #now = 0
  #timers: { readonly at: number; readonly run: () => void }[] = []

  now = (): number => this.#now
  wall = (): number => this.#now
  sleep = (ms: number, signal: AbortSignal): Promise<void> => sleepOn(this, ms, signal)
  after = (ms: number, run: () => void): (() => void) => {
    const timer = { at: this.#now + ms, run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer)
    }
  }

  advance(ms: number): void {
    this.#now += ms
    const due = this.#timers.filter((one) => one.at <= this.#now)
    this.#timers = this.#timers.filter((one) => one.at > this.#now)
    for (const timer of due) timer.run()
  }
}

/** Several turns of the event loop: everything that can go on without time passing has done so. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function running(pass: (clock: HandClock) => Promise<number | undefined>) {
  const clock = new HandClock()
  const state = { passes: 0 }
  const loop = new ApplyLoop(clock)
  const stop = new AbortController()
  const ended = loop.run(() => {
    state.passes++
    return pass(clock)
  }, stop.signal)
  return { clock, loop, state, stop, ended }
}

describe('the apply loop', () => {
  test('does nothing until it is marked', async () => {
    const { state, stop, ended } = running(() => Promise.resolve(undefined))
    await settled()
    expect(state.passes).toBe(0)
    stop.abort()
    await ended
  })

  test('runs at once after quiet, once for all marks of a turn', async () => {
    const { loop, state, stop, ended } = running(() => Promise.resolve(undefined))
    for (let mark = 0; mark < 10; mark++) loop.mark()
    await settled()
    expect(state.passes).toBe(1)
    loop.mark()
    await settled()
    expect(state.passes).toBe(2)
    stop.abort()
    await ended
  })

  test('a mark during a pass brings another one', async () => {
    const gate: { open: () => void } = { open: () => undefined }
    const { loop, state, stop, ended } = running(
      () =>
        new Promise(
          (resolve) =>
            (gate.open = () => {
              resolve(undefined)
            }),
        ),
    )
    loop.mark()
    await settled()
    loop.mark()
    await settled()
    expect(state.passes).toBe(1)
    gate.open()
    await settled()
    expect(state.passes).toBe(2)
    gate.open()
    stop.abort()
    await ended
  })

  test('pauses after a pass as long as that took, at most 100 ms', async () => {
    const cost = { ms: 40 }
    const { clock, loop, state, stop, ended } = running((clock) => {
      clock.advance(cost.ms)
      return Promise.resolve(undefined)
    })
    loop.mark()
    await settled()
    loop.mark()
    clock.advance(39)
    await settled()
    expect(state.passes).toBe(1)
    cost.ms = 5000
    clock.advance(1)
    await settled()
    expect(state.passes).toBe(2)
    loop.mark()
    clock.advance(99)
    await settled()
    expect(state.passes).toBe(2)
    clock.advance(1)
    await settled()
    expect(state.passes).toBe(3)
    stop.abort()
    await ended
  })

  test('runs again when the pass asked for it', async () => {
    const { clock, loop, state, stop, ended } = running(() => Promise.resolve(state.passes === 1 ? 500 : undefined))
    loop.mark()
    await settled()
    clock.advance(499)
    await settled()
    expect(state.passes).toBe(1)
    clock.advance(1)
    await settled()
    expect(state.passes).toBe(2)
    clock.advance(10_000)
    await settled()
    expect(state.passes).toBe(2)
    stop.abort()
    await ended
  })

  test('rejects with what a pass throws', async () => {
    const loop = new ApplyLoop(systemClock)
    loop.mark()
    await expect(loop.run(() => Promise.reject(new Error('defect')), new AbortController().signal)).rejects.toThrow('defect')
  })
})

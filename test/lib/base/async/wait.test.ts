// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { NotYetError } from '#lib/base/errors.ts'
import { Notifier, waitUntil, withinLimits } from '#lib/base/async/wait.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'

const MS = 1000

let clock: FakeClock
let changed: Notifier
beforeEach(() => {
  clock = new FakeClock()
  changed = new Notifier()
})

function until(missing: () => string | undefined, signal?: AbortSignal): Promise<void> {
  return waitUntil({ missing, wokenBy: [changed], clock, deadline: clock.now() + MS, signal })
}

describe('what is missing', () => {
  test('is asked for with each notification of any source, and is there', async () => {
    const other = new Notifier()
    let asked = 0
    const done = waitUntil({
      missing: () => (++asked < 3 ? 'a row' : undefined),
      wokenBy: [other, changed],
      clock,
      deadline: clock.now() + MS,
    })
    changed.notify()
    other.notify()
    await expect(done).resolves.toBeUndefined()
    changed.notify()
    other.notify()
    expect([asked, clock.pending]).toEqual([3, 0])
  })

  test('is looked for by no time', () => {
    let asked = 0
    void until(() => `a row, ${++asked}`).catch(() => undefined)
    clock.advance(MS - 1)
    expect(asked).toBe(1)
  })

  test('is named when it has not come in time, as it is then', async () => {
    let reason = 'a row'
    const done = until(() => reason)
    reason = 'a program'
    clock.advance(MS)
    await expect(done).rejects.toThrow(new NotYetError('not ready in time: a program'))
  })

  test('and is there at the deadline is in time, though nothing has told', async () => {
    let reason: string | undefined = 'a row'
    const done = until(() => reason)
    reason = undefined
    clock.advance(MS)
    await expect(done).resolves.toBeUndefined()
  })

  test('cannot be asked for: the wait ends with that', async () => {
    let isGone = false
    const done = until(() => {
      if (isGone) throw new Error('no such device')
      return 'a row'
    })
    isGone = true
    changed.notify()
    await expect(done).rejects.toThrow('no such device')
    expect(clock.pending).toBe(0)
  })

  test('is waited for no longer once the signal aborts, nor later', async () => {
    const stop = new AbortController()
    const done = until(() => 'a row', stop.signal)
    stop.abort(new Error('the agent stops'))
    await expect(done).rejects.toThrow('the agent stops')
    await expect(until(() => undefined, stop.signal)).rejects.toThrow('the agent stops')
    expect(clock.pending).toBe(0)
  })
})

describe('work', () => {
  const within = <T>(work: Promise<T>, signal?: AbortSignal): Promise<T> =>
    withinLimits(work, 'an address', { clock, deadline: clock.now() + MS, signal })

  test('in time is what it comes to, be it a failure', async () => {
    await expect(within(Promise.resolve('done'))).resolves.toBe('done')
    await expect(within(Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(clock.pending).toBe(0)
  })

  test('that takes too long, or is wanted no more, goes on by itself', async () => {
    const { promise, reject } = Promise.withResolvers<string>()
    const stop = new AbortController()
    const [late, ended] = [within(promise), within(promise, stop.signal)]
    stop.abort(new Error('given up'))
    await expect(ended).rejects.toThrow('given up')
    clock.advance(MS)
    await expect(late).rejects.toThrow('not ready in time: an address')
    // which is no unhandled rejection
    reject(new Error('no'))
    await new Promise(setImmediate)
    expect(clock.pending).toBe(0)
  })
})

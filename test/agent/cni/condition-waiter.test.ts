// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { ConditionWaiter } from '#agent/cni/condition-waiter.ts'
import { CniError } from '#agent/cni/cni-error.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

let clock: FakeClock
let waiting: ConditionWaiter
beforeEach(() => {
  clock = new FakeClock()
  waiting = new ConditionWaiter(clock)
})

describe('what is missing', () => {
  test('is asked for with each news, and is there', async () => {
    let missing: string | undefined = 'a row'
    const done = waiting.until(() => missing, clock.now() + 1000)
    waiting.news()
    missing = undefined
    waiting.news()
    await expect(done).resolves.toBeUndefined()
  })

  test('is named when it has not come in time', async () => {
    const done = waiting.until(() => 'a row', clock.now() + 1000)
    clock.advance(1000)
    await expect(done).rejects.toThrow('not ready in time: a row')
  })

  test('and never will come is waited for no longer', async () => {
    let isGone = false
    let asked = 0
    const done = waiting.until(() => {
      asked++
      if (isGone) throw new CniError('tryAgain', 'the pod is gone')
      return 'a row'
    }, clock.now() + 1000)
    isGone = true
    waiting.news()
    await expect(done).rejects.toThrow('the pod is gone')
    waiting.news()
    clock.advance(1000)
    expect(asked).toBe(2)
  })

  test('is waited for no longer once the agent stops, nor later', async () => {
    const both = [waiting.until(() => 'a row', clock.now() + 1000), waiting.poll(() => 'a cable', clock.now() + 1000)]
    const ended = Promise.allSettled(both)
    waiting.end()
    clock.advance(3)
    await ended
    both.push(waiting.until(() => undefined, clock.now() + 1000))
    for (const one of both) await expect(one).rejects.toThrow('the agent of this node stops')
    expect(clock.pending).toBe(0)
  })
})

test('a wait ends when its work is not wanted any more; wanted work fails with its own error', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  let isWanted = true
  const missing = (): string => {
    if (!isWanted) throw new CniError('tryAgain', 'given up')
    return 'an address'
  }
  const [kept, given] = [
    waiting.forWork(promise, () => 'an address', clock.now() + 1000),
    waiting.forWork(promise, missing, clock.now() + 1000),
  ]
  isWanted = false
  waiting.news()
  await expect(given).rejects.toThrow('given up')
  resolve('done')
  await expect(kept).resolves.toBe('done')
  await expect(waiting.forWork(Promise.reject(new Error('no')), missing, clock.now() + 1000)).rejects.toThrow('given up')
  isWanted = true
  await expect(waiting.forWork(Promise.reject(new Error('no')), missing, clock.now() + 1000)).rejects.toThrow('no')
  const late = waiting.forWork(Promise.withResolvers<string>().promise, missing, clock.now() + 1000)
  clock.advance(1000)
  await expect(late).rejects.toThrow('not ready in time: an address')
  expect(clock.pending).toBe(0)
})

test('work that takes too long is waited for no longer, and may go on', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const late = waiting.inTime(promise, 'an address', clock.now() + 1000)
  const early = waiting.inTime(promise, 'an address', clock.now() + 2000)
  clock.advance(1000)
  await expect(late).rejects.toThrow('not ready in time: an address')
  resolve('done')
  await expect(early).resolves.toBe('done')
  await expect(waiting.inTime(Promise.reject(new Error('no')), 'an address', clock.now() + 1000)).rejects.toThrow('no')
  expect(clock.pending).toBe(0)
})

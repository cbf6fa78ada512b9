// SPDX-License-Identifier: Apache-2.0
/** Deadlines of a process that may be held up. */
import { expect, test } from 'vitest'
import { deadline, within } from '../../lab/deadline.ts'
import { holdUp } from './tools/held-up.ts'

/** Resolves with how long it took. */
function elapsed(ms: number): Promise<number> {
  const begun = performance.now()
  return new Promise((resolve) => deadline(ms, () => resolve(performance.now() - begun)))
}

test('it comes at its time', async () => {
  // the best of three: this process may be held up itself
  const took = Math.min(await elapsed(200), await elapsed(200), await elapsed(200))
  expect(took).toBeGreaterThanOrEqual(195)
  expect(took).toBeLessThan(400)
})

test('the time for which the process was held up is given back, and it comes nevertheless', async () => {
  const over = elapsed(200)
  holdUp(400)
  // of the slice in which it was held up no more than its own length is gone
  expect(await over).toBeGreaterThanOrEqual(400 + 150)
})

test('also when it is held up again and again', async () => {
  const holding = setInterval(() => {
    holdUp(100)
  }, 1)
  const took = await elapsed(100)
  clearInterval(holding)
  expect(took).toBeGreaterThan(500)
})

test('what is taken back never comes', async () => {
  let came = false
  const cancel = deadline(100, () => (came = true))
  await elapsed(10)
  cancel()
  await elapsed(200)
  expect(came).toBe(false)
})

test('what ends in time is its value, what does not is aborted', async () => {
  expect(await within(5000, () => Promise.resolve('in time'))).toBe('in time')
  const never = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reject(signal.reason instanceof Error ? signal.reason : new Error('no reason'))
      })
    })
  await expect(within(20, never)).rejects.toMatchObject({ name: 'TimeoutError' })
})

// SPDX-License-Identifier: Apache-2.0
/** Which job may start: most work first, within the weight, none beside one that is alone. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BUSY, MOSTLY_WAITING, nextOf, WAITING, type Weighed } from './scheduler.ts'

const busy = (seconds: number): Weighed => ({ weight: BUSY, seconds })
const idle = (seconds: number): Weighed => ({ weight: WAITING, seconds })
const alone = (seconds: number): Weighed => ({ weight: undefined, seconds })

test('the job with most work for a processor starts first, however long it waits', () => {
  expect(nextOf([busy(3), idle(9), busy(5)], [])).toEqual(busy(5))
  expect(nextOf([busy(3), idle(11), busy(5)], [])).toEqual(idle(11))
})

test('six that wait most of their time run beside each other', () => {
  const waiting = { weight: MOSTLY_WAITING, seconds: 1 }
  expect(nextOf([waiting], Array(5).fill(waiting))).toEqual(waiting)
  expect(nextOf([waiting], Array(6).fill(waiting))).toBeUndefined()
})

test.each([
  ['a busy one beside a busy one', [busy(1)], busy(7)],
  ['a waiting one beside two busy ones has no room', [busy(1), busy(1)], undefined],
  ['a busy one has no room beside a busy and a waiting one: the waiting one starts', [busy(1), idle(1)], idle(2)],
  ['a busy one beside two waiting ones', [idle(1), idle(1)], busy(7)],
  ['a fourth waiting one beside three', [idle(1), idle(1), idle(1)], idle(2)],
  ['no fifth', [idle(1), idle(1), idle(1), idle(1)], undefined],
  ['none beside one that is alone', [alone(1)], undefined],
])('%s', (_what, running, next) => {
  expect(nextOf([busy(7), idle(2), alone(100)], running)).toEqual(next)
})

test('those that are alone wait until nothing else is left or runs, and keep their order', () => {
  expect(nextOf([alone(1), alone(5)], [idle(1)])).toBeUndefined()
  expect(nextOf([alone(1), alone(5)], [])).toEqual(alone(1))
  expect(nextOf([alone(1), idle(1)], [])).toEqual(idle(1))
})

const weighed = fc.record<Weighed>({
  weight: fc.constantFrom(BUSY, WAITING, MOSTLY_WAITING, 1.5, undefined),
  seconds: fc.integer({ min: 1, max: 900 }),
})

test('every job starts once; never more than a weight of two, or two of which one is alone', () => {
  fc.assert(
    fc.property(fc.array(weighed, { maxLength: 40 }), (jobs) => {
      const waiting = [...jobs]
      const running = new Map<Weighed, number>()
      let now = 0
      let begun = 0
      do {
        for (let job = nextOf(waiting, [...running.keys()]); job !== undefined; job = nextOf(waiting, [...running.keys()])) {
          waiting.splice(waiting.indexOf(job), 1)
          running.set(job, now + job.seconds)
          begun++
        }
        const at = [...running.keys()]
        const weights = at.map(({ weight }) => weight ?? 2)
        expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeLessThanOrEqual(2)
        const [first] = [...running].sort((a, b) => a[1] - b[1])
        if (first === undefined) break
        now = first[1]
        running.delete(first[0])
      } while (running.size > 0 || waiting.length > 0)
      expect([begun, waiting]).toEqual([jobs.length, []])
    }),
  )
})

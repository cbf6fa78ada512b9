// SPDX-License-Identifier: Apache-2.0
/** When deletions are believed. Layer: test. */
import { expect, test } from 'vitest'
import { DeletionDelay } from '#lib/manifests/deletion-delay.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

function setup(): { clock: FakeClock; settling: DeletionDelay } {
  const clock = new FakeClock()
  return { clock, settling: new DeletionDelay({ clock, quietMs: 100, onDue: () => undefined }) }
}

test('deletions are due after a quiet moment', () => {
  const { clock, settling } = setup()
  settling.note(0, 10)
  expect(clock.pending).toBe(0)
  settling.note(1, 10)
  clock.advance(60)
  settling.note(2, 10)
  clock.advance(60)
  settling.note(2, 10)
  expect(settling.isDue).toBe(false)
  clock.advance(40)
  expect(settling.isDue).toBe(true)
  settling.clear()
  expect([settling.isDue, clock.pending]).toEqual([false, 0])
})

test('deletions are never due when everything came back', () => {
  const { clock, settling } = setup()
  settling.note(1, 10)
  settling.note(0, 10)
  clock.advance(1_000)
  expect(settling.isDue).toBe(false)
})

test.each([
  ['a few at a time: after a second at the latest', 100, true],
  ['most of the directory: not before it stops', 20, false],
])('%s', (_, files, due) => {
  const { clock, settling } = setup()
  for (let leaving = 1; leaving <= 15; leaving++) {
    settling.note(leaving, files)
    clock.advance(80)
  }
  expect(settling.isDue).toBe(due)
  clock.advance(100)
  expect(settling.isDue).toBe(true)
})

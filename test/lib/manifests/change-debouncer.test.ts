// SPDX-License-Identifier: Apache-2.0
/** When touched files are looked at. Layer: test. */
import { expect, test } from 'vitest'
import { ChangeDebouncer } from '#lib/manifests/change-debouncer.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

function setup(): { clock: FakeClock; book: ChangeDebouncer; due: () => number } {
  const clock = new FakeClock()
  let due = 0
  const book = new ChangeDebouncer(clock, () => due++)
  return { clock, book, due: () => due }
}

test('a rename is looked at after 1 ms', () => {
  const { clock, book, due } = setup()
  book.note({ path: 'a.yaml', inPlace: false })
  expect(book.isDue).toBe(false)
  clock.advance(1)
  expect([due(), book.isDue]).toEqual([1, true])
  expect(book.take()).toEqual({ paths: new Set(['a.yaml']), everything: false })
  expect([book.isDue, clock.pending]).toEqual([false, 0])
})

test('writing in place is waited for, but not for ever', () => {
  const { clock, book, due } = setup()
  for (let ms = 0; ms < 48; ms += 3) {
    book.note({ path: 'a.yaml', inPlace: true })
    clock.advance(3)
  }
  expect(due()).toBe(0)
  book.note({ path: 'a.yaml', inPlace: true })
  clock.advance(2)
  expect(due()).toBe(1)
})

test('a write delays a rename, a rename does not hasten a write', () => {
  const { clock, book, due } = setup()
  book.note({ path: 'a.yaml', inPlace: false })
  book.note({ path: 'b.yaml', inPlace: true })
  book.note({ path: 'c.yaml', inPlace: false })
  clock.advance(3)
  expect(due()).toBe(0)
  clock.advance(1)
  expect([due(), book.take().paths.size]).toEqual([1, 3])
})

test('a flood means that everything is looked at', () => {
  const { clock, book } = setup()
  for (let at = 0; at < 5_000; at++) book.note({ path: `${at}.yaml`, inPlace: false })
  clock.advance(1)
  expect(book.take().everything).toBe(true)
})

test('a later look is later, once, and a stop cancels it', () => {
  const { clock, book, due } = setup()
  book.noteLater({ path: undefined, inPlace: false }, 500)
  book.noteLater({ path: undefined, inPlace: false }, 500)
  clock.advance(499)
  expect(due()).toBe(0)
  clock.advance(2)
  expect([due(), book.take().everything]).toEqual([1, true])
  book.note({ path: 'a.yaml', inPlace: true })
  book.noteLater({ path: undefined, inPlace: false }, 500)
  book.stop()
  expect(clock.pending).toBe(0)
})

// SPDX-License-Identifier: Apache-2.0
/** What every way of attaching must do, the fake one included. Layer: test. */
import { expect, test } from 'vitest'
import type { Hooks, LoadedProgram, Place } from '#agent/dataplane/attach/hook.ts'

export interface HooksUnderTest<P extends Place> {
  /** one that knows nothing but what is there */
  readonly open: () => Hooks<P>
  /** two places where nothing is */
  readonly places: readonly [P, P]
  /** two for the first place, one for the second */
  readonly programs: readonly [LoadedProgram, LoadedProgram, LoadedProgram]
}

/** `setup` is called once for each test, after which everything is taken away again by the caller. */
export function hooksContract<P extends Place>(setup: () => HooksUnderTest<P>): void {
  test('a place where nothing is reads so', () => {
    const { open, places } = setup()
    expect(places.map((place) => open().read(place))).toEqual([undefined, undefined])
    expect(open().list()).toEqual([])
  })

  test('what is written is read, also by one that comes later', () => {
    const {
      open,
      places: [a, b],
      programs: [one],
    } = setup()
    const hooks = open()
    hooks.write(a, one)
    for (const seen of [hooks, open()]) {
      expect([seen.read(a), seen.read(b)]).toEqual([one.id, undefined])
      expect(seen.list()).toEqual([a.key])
    }
  })

  test('writing the same again changes nothing, writing another replaces', () => {
    const {
      open,
      places: [a, b],
      programs: [one, two, other],
    } = setup()
    const hooks = open()
    hooks.write(a, one)
    hooks.write(b, other)
    hooks.write(a, one)
    expect(hooks.read(a)).toBe(one.id)
    const later = open()
    later.write(a, two)
    expect([later.read(a), later.read(b)]).toEqual([two.id, other.id])
    expect(later.list().sort()).toEqual([a.key, b.key].sort())
  })

  test('what is cleared is gone at once, the other stays; clearing nothing does nothing', () => {
    const {
      open,
      places: [a, b],
      programs: [one, , other],
    } = setup()
    const hooks = open()
    hooks.write(a, one)
    hooks.write(b, other)
    const later = open()
    later.clear(a.key)
    later.clear(a.key)
    expect([later.read(a), later.read(b)]).toEqual([undefined, other.id])
    expect(open().list()).toEqual([b.key])
  })
}

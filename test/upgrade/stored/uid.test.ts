// SPDX-License-Identifier: Apache-2.0
/** UIDs that clients saw. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { otherUid, shownUid } from '#upgrade/stored/uid.ts'

const PAIRS = [
  ['51fdcd2c-eb0b-40c8-834c-8986d0bdd420', '8abfb334-d7d0-4013-8332-91610bbd2b04'],
  ['0e5e3214-5bda-429e-8d53-2f1b77363286', '707a4c28-da5b-4279-8dca-f4d8ee6c4c61'],
] as const

test.each(PAIRS)('%s is stored where clients saw %s, and the other way round', (a, b) => {
  expect([otherUid(a), otherUid(b)]).toEqual([b, a])
})

test('the other UID of the other UID is the first one', () => {
  fc.assert(
    fc.property(fc.uuid(), (uid) => {
      expect(otherUid(otherUid(uid) ?? '')).toBe(uid)
    }),
  )
})

test('what is no UID has no other', () => {
  expect(['', '51fdcd2c', '51fdcd2c-eb0b-40c8-834c-8986d0bdd42g'].map(otherUid)).toEqual([undefined, undefined, undefined])
})

test.each([
  ['v3.15.5', 'stored'],
  ['v3.27.4', 'stored'],
  ['3.27.5', 'other'],
  ['v3.28.0', 'other'],
  ['v3.31.5-12', 'other'],
  ['', undefined],
])('clients of version %s saw the UID that is %s', (version, which) => {
  const [stored, other] = PAIRS[0]
  expect(shownUid(stored, version)).toBe(which === 'stored' ? stored : which === 'other' ? other : undefined)
})

// SPDX-License-Identifier: Apache-2.0
/** Contested keys. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { atOnce } from '#lib/base/async/slices.ts'
import { KeyConflicts, type Claim, type Verdict } from '#agent/compile/key-conflicts.ts'

function conflicts(): { readonly set: (owner: string, claims: readonly Claim[]) => Verdict } & Pick<KeyConflicts, 'holder'> {
  const all = new KeyConflicts()
  return { set: (owner, claims) => atOnce(all.set(owner, claims)), holder: (key) => all.holder(key) }
}

test('the lower rank wins a key, then the first name; owners that win or lose one are named', () => {
  const claims = conflicts()
  expect(claims.set('b', [{ key: 'k', rank: 1 }])).toEqual({ lost: new Set(), disturbed: new Set() })
  expect(claims.set('c', [{ key: 'k', rank: 1 }])).toEqual({ lost: new Set(['k']), disturbed: new Set() })
  expect(claims.set('a', [{ key: 'k', rank: 1 }])).toEqual({ lost: new Set(), disturbed: new Set(['b']) })
  expect(claims.set('c', [{ key: 'k', rank: 0 }])).toEqual({ lost: new Set(), disturbed: new Set(['a']) })
  expect(claims.set('c', [])).toEqual({ lost: new Set(), disturbed: new Set(['a']) })
  expect(claims.set('a', [{ key: 'other', rank: 0 }])).toEqual({ lost: new Set(), disturbed: new Set(['b']) })
})

test('of equal ranks the one that is longer there wins, then the first name; who says nothing comes after both', () => {
  const claims = conflicts()
  const claim = (since?: number) => [{ key: 'k', rank: 1, since }]
  expect(claims.set('a', claim())).toEqual({ lost: new Set(), disturbed: new Set() })
  expect(claims.set('d', claim(5))).toEqual({ lost: new Set(), disturbed: new Set(['a']) })
  expect(claims.set('b', claim(7)).lost).toEqual(new Set(['k']))
  expect(claims.set('c', claim(5))).toEqual({ lost: new Set(), disturbed: new Set(['d']) })
  expect(claims.set('e', [{ key: 'k', rank: 0 }])).toEqual({ lost: new Set(), disturbed: new Set(['c']) })
})

test('the owner of a key does not depend on the order of claims', () => {
  const owner = fc.constantFrom('a', 'b', 'c')
  const claim = fc.record({ key: fc.constantFrom('k', 'l'), rank: fc.nat(2) })
  fc.assert(
    fc.property(fc.array(fc.tuple(owner, fc.uniqueArray(claim, { selector: ({ key }) => key })), { maxLength: 20 }), (steps) => {
      const claims = conflicts()
      const held = new Map<string, ReadonlySet<string>>()
      const last = new Map(steps)
      const settle = (name: string, wants: readonly { readonly key: string; readonly rank: number }[]): void => {
        const { lost, disturbed } = claims.set(name, wants)
        held.set(name, new Set(wants.map(({ key }) => key).filter((key) => !lost.has(key))))
        seen.set(name, wants)
        for (const other of disturbed) settle(other, seen.get(other) ?? [])
      }
      const seen = new Map<string, readonly { readonly key: string; readonly rank: number }[]>()
      for (const [name, wants] of steps) settle(name, wants)
      for (const key of ['k', 'l']) {
        const best = [...last]
          .flatMap(([name, wants]) => wants.filter((want) => want.key === key).map(({ rank }) => ({ name, rank })))
          .sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : 1))[0]
        expect([...held].filter(([, keys]) => keys.has(key)).map(([name]) => name)).toEqual(best === undefined ? [] : [best.name])
      }
    }),
  )
})

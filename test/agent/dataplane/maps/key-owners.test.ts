// SPDX-License-Identifier: Apache-2.0
/** Claims against a plain model: every key goes to the smallest owner that claims it. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KeyOwners } from '#agent/dataplane/maps/key-owners.ts'

/** The simplest thing that can be wanted from. */
function mapAsWanted(rows: Map<string, string>): ConstructorParameters<typeof KeyOwners>[0] {
  return { want: (key, value) => rows.set(key, value), unwant: (key) => rows.delete(key), wanted: (key) => rows.get(key) }
}

/** Of each key the row of the first owner that has one. */
function winners(fragments: ReadonlyMap<string, readonly (readonly [string, string])[]>): Map<string, string> {
  return new Map(
    [...fragments]
      .sort()
      .reverse()
      .flatMap(([, entries]) => entries),
  )
}

describe('KeyOwners', () => {
  test('the smallest owner wins, in whatever order they come', () => {
    for (const order of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      const rows = new Map<string, string>()
      const claims = new KeyOwners(mapAsWanted(rows))
      for (const owner of order) claims.setFragment(owner, [['k', owner]])
      expect(rows.get('k')).toBe('a')
    }
  })

  test('another order of claims may be given', () => {
    const rows = new Map<string, string>()
    const claims = new KeyOwners(mapAsWanted(rows), (a, b) => (a.owner < b.owner ? 1 : -1))
    for (const owner of ['a', 'c', 'b']) claims.setFragment(owner, [['k', owner]])
    expect(rows.get('k')).toBe('c')
    claims.setFragment('c', [])
    expect(rows.get('k')).toBe('b')
  })

  test('the loser inherits when the winner leaves, with the value it has by then', () => {
    const rows = new Map<string, string>()
    const claims = new KeyOwners(mapAsWanted(rows))
    claims.setFragment('a', [['k', 'from a']])
    claims.setFragment('b', [['k', 'first']])
    claims.setFragment('b', [['k', 'second']])
    claims.setFragment('a', [])
    expect([...rows]).toEqual([['k', 'second']])
  })

  test('of two rows with one key in a fragment the later counts', () => {
    const rows = new Map<string, string>()
    const claims = new KeyOwners(mapAsWanted(rows))
    claims.setFragment('a', [
      ['k', '1'],
      ['k', '2'],
    ])
    claims.setFragment('a', [])
    expect(rows.size).toBe(0)
  })

  test('property: the winners equal those of sorting all claims again', () => {
    const owner = fc.constantFrom('o1', 'o2', 'o3', 'o4')
    const entries = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2', '3')), {
      selector: ([key]) => key,
    })
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.record({ owner, entries }) },
      { weight: 1, arbitrary: fc.record({ complete: fc.subarray(['o1', 'o2', 'o3', 'o4']) }) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const rows = new Map<string, string>()
        const claims = new KeyOwners(mapAsWanted(rows))
        const model = new Map<string, readonly (readonly [string, string])[]>()
        for (const now of steps) {
          if ('complete' in now) {
            claims.complete(new Set(now.complete))
            for (const name of model.keys()) if (!now.complete.includes(name)) model.delete(name)
          } else {
            claims.setFragment(now.owner, now.entries)
            model.set(now.owner, now.entries)
          }
        }
        expect(rows).toEqual(winners(model))
        // what losers have is seen when winners go
        for (const name of [...model.keys()].sort()) {
          claims.setFragment(name, [])
          model.delete(name)
          expect(rows).toEqual(winners(model))
        }
      }),
      { numRuns: 500 },
    )
  })
})

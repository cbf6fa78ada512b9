// SPDX-License-Identifier: Apache-2.0
/** The delta against a plain model: whatever happens, applying what is pending makes the kernel equal to what is
 * wanted. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RowDiff } from '#agent/dataplane/maps/row-diff.ts'

/** Writes all that is pending into `kernel`, as a table does. */
function applyAll(delta: RowDiff, kernel: Map<string, string>): void {
  for (const [key, value] of delta.updates()) {
    kernel.set(key, value)
    delta.written(key, value)
  }
  for (const key of delta.deletes()) {
    kernel.delete(key)
    delta.removed(key)
  }
}

describe('RowDiff', () => {
  test('a new row is pending until written', () => {
    const delta = new RowDiff()
    delta.want('k', 'v')
    expect([...delta.updates()]).toEqual([['k', 'v']])
    delta.written('k', 'v')
    expect(delta.pendingUpdates).toBe(0)
    expect(delta.actual('k')).toBe('v')
  })

  test('a row taken back before it was written leaves nothing to do', () => {
    const delta = new RowDiff()
    delta.want('k', 'v')
    delta.unwant('k')
    expect([delta.pendingUpdates, delta.pendingDeletes]).toEqual([0, 0])
  })

  test('a changed row is a replacement, not a deletion; changing it back leaves nothing to do', () => {
    const delta = new RowDiff()
    delta.readBack([['k', 'old']])
    delta.want('k', 'new')
    expect([...delta.replacements()]).toEqual([['k', 'new']])
    expect([...delta.deletes()]).toEqual([])
    delta.want('k', 'old')
    expect([delta.pendingUpdates, delta.pendingDeletes]).toEqual([0, 0])
  })

  test('what an earlier agent left is adopted when equal and deleted when unknown', () => {
    const delta = new RowDiff()
    delta.want('a', '1')
    delta.readBack([
      ['a', '1'],
      ['z', '9'],
    ])
    expect(delta.pendingUpdates).toBe(0)
    expect([...delta.deletes()]).toEqual(['z'])
  })

  const kept: [string, string][] = [
    ['a', '1'],
    ['b', '2'],
  ]
  test.each<{ name: string; found: [string, string][]; updates: [string, string][]; deletes: string[] }>([
    { name: 'all of it', found: [...kept], updates: [], deletes: [] },
    { name: 'a row less', found: [['a', '1']], updates: [['b', '2']], deletes: [] },
    { name: 'a row more', found: [...kept, ['c', '3']], updates: [], deletes: ['c'] },
    { name: 'another value', found: [kept[0] ?? ['', ''], ['b', '3']], updates: [['b', '2']], deletes: [] },
    { name: 'another key', found: [kept[0] ?? ['', ''], ['c', '2']], updates: [['b', '2']], deletes: ['c'] },
  ])('of what is wanted a start finds $name', ({ found, updates, deletes }) => {
    const delta = new RowDiff()
    for (const [key, value] of kept) delta.want(key, value)
    expect(delta.readBack(found)).toEqual({ missing: 0, changed: 0, foreign: found.length })
    expect([[...delta.updates()], [...delta.deletes()], delta.known]).toEqual([updates, deletes, found.length])
    applyAll(delta, new Map(found))
    delta.want('a', '9')
    delta.unwant('b')
    expect([[...delta.updates()], [...delta.deletes()], delta.size]).toEqual([[['a', '9']], ['b'], 1])
  })

  test('drift is counted by kind: missing, changed, foreign', () => {
    const delta = new RowDiff()
    for (const key of ['a', 'b', 'c']) {
      delta.want(key, '1')
      delta.written(key, '1')
    }
    expect(
      delta.readBack([
        ['a', '1'],
        ['b', '1'],
        ['c', '1'],
      ]),
    ).toEqual({ missing: 0, changed: 0, foreign: 0 })
    expect(
      delta.readBack([
        ['a', '1'],
        ['b', '2'],
        ['x', '1'],
      ]),
    ).toEqual({ missing: 1, changed: 1, foreign: 1 })
    expect([...delta.updates()]).toEqual(
      expect.arrayContaining([
        ['b', '1'],
        ['c', '1'],
      ]),
    )
    expect([...delta.deletes()]).toEqual(['x'])
  })

  test('a row that a stranger wrote before us and one that went are drift, though all that was to be written is there', () => {
    const delta = new RowDiff()
    delta.want('a', '1')
    delta.written('a', '1')
    delta.want('b', '1')
    expect(delta.readBack([['b', '1']])).toEqual({ missing: 1, changed: 0, foreign: 1 })
    expect([...delta.updates()]).toEqual([['a', '1']])
  })

  test('a failed delete found again by a read-back is no drift', () => {
    const delta = new RowDiff()
    delta.readBack([['x', '1']])
    expect(delta.readBack([['x', '1']])).toEqual({ missing: 0, changed: 0, foreign: 0 })
    expect(delta.pendingDeletes).toBe(1)
  })

  test('property: any history ends in desired = actual', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'e')
    const value = fc.constantFrom('1', '2', '3')
    const step = fc.oneof(
      fc.record({ do: fc.constant('want' as const), key, value }),
      fc.record({ do: fc.constant('unwant' as const), key }),
      fc.record({ do: fc.constant('write' as const), key }),
      fc.record({ do: fc.constant('delete' as const), key }),
      fc.record({ do: fc.constant('stranger' as const), key, value: fc.option(value, { nil: undefined }) }),
      fc.record({ do: fc.constant('readBack' as const) }),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(key, value), { maxLength: 2 }), fc.array(step, { maxLength: 60 }), (found, steps) => {
        const delta = new RowDiff()
        const desired = new Map<string, string>()
        const kernel = new Map<string, string>(found)
        for (const now of steps) {
          if (now.do === 'want') {
            desired.set(now.key, now.value)
            delta.want(now.key, now.value)
          } else if (now.do === 'unwant') {
            desired.delete(now.key)
            delta.unwant(now.key)
          } else if (now.do === 'write') {
            const pending = delta.updates().get(now.key)
            if (pending === undefined) continue
            kernel.set(now.key, pending)
            delta.written(now.key, pending)
          } else if (now.do === 'delete') {
            if (![...delta.deletes()].includes(now.key)) continue
            kernel.delete(now.key)
            delta.removed(now.key)
          } else if (now.do === 'stranger') {
            if (now.value === undefined) kernel.delete(now.key)
            else kernel.set(now.key, now.value)
          } else delta.readBack(kernel)
        }
        delta.readBack(kernel)
        applyAll(delta, kernel)
        expect(new Map([...kernel].sort())).toEqual(new Map([...desired].sort()))
        expect([delta.pendingUpdates, delta.pendingDeletes, delta.size]).toEqual([0, 0, desired.size])
        expect(delta.readBack(kernel)).toEqual({ missing: 0, changed: 0, foreign: 0 })
      }),
      { numRuns: 500 },
    )
  })
})

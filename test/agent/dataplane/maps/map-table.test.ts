// SPDX-License-Identifier: Apache-2.0
/** A table over a map in memory: batches, failures, strangers. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MapTable } from '#agent/dataplane/maps/map-table.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'

/** Four-byte keys and values, so that tests can be read. */
function setup(maxEntries = 100_000): { map: FakeMap; table: MapTable } {
  const map = new FakeMap({ name: 'np_test', keySize: 4, valueSize: 4, maxEntries })
  return { map, table: new MapTable(map) }
}

function numbered(count: number, value = 'vvvv'): [string, string][] {
  return Array.from({ length: count }, (_, at) => [at.toString(36).padStart(4, '0'), value])
}

describe('MapTable', () => {
  test('writes nothing before the first read-back', () => {
    const { map, table } = setup()
    table.setFragment('o', numbered(1))
    const applied = table.applyUpdates()
    expect([applied.done, table.pending.updates]).toEqual([0, 1])
    expect(applied.errors.map((error) => error.message)).toEqual(['map np_test: update: nothing was read back yet'])
    expect(map.calls).toEqual([])
  })

  test('10,000 rows take three calls; a restarted agent writes none', async () => {
    const { map, table } = setup()
    table.setFragment('o', numbered(10_000))
    await table.readBack()
    expect(table.applyUpdates()).toEqual({ done: 10_000, errors: [] })
    expect(map.calls).toEqual(['dump', 'updateBatch', 'updateBatch', 'updateBatch'])

    const restarted = new MapTable(map)
    restarted.setFragment('o', numbered(10_000))
    await restarted.readBack()
    expect(restarted.pending).toEqual({ updates: 0, deletes: 0 })
  })

  test('what was read before rows are given is compared with them', async () => {
    const { map, table } = setup()
    for (const [key, value] of numbered(3)) map.poke(key, value)
    const reading = table.read()
    table.setFragment('o', [...numbered(2), ['0002', 'wwww']])
    expect(await table.readBack(await reading)).toEqual({ missing: 0, changed: 0, foreign: 3 })
    expect([...table.pendingRows()]).toEqual([['0002', 'wwww']])
    expect(map.calls).toEqual(['dump'])
  })

  test('one changed row of one owner costs one row', async () => {
    const { map, table } = setup()
    table.setFragment('a', [
      ['aaaa', '1111'],
      ['aaab', '1111'],
    ])
    table.setFragment('b', [['bbbb', '1111']])
    await table.readBack()
    table.applyUpdates()
    table.setFragment('a', [
      ['aaaa', '1111'],
      ['aaab', '2222'],
    ])
    expect(table.applyUpdates()).toMatchObject({ done: 1 })
    expect([...map.contents()]).toEqual([
      ['aaaa', '1111'],
      ['aaab', '2222'],
      ['bbbb', '1111'],
    ])
  })

  test('deletes apart from updates, in batches; a key that is gone already is done', async () => {
    const { map, table } = setup()
    for (const [key, value] of numbered(5000)) map.poke(key, value)
    await table.readBack()
    map.poke('0000', undefined)
    expect(table.applyUpdates().done).toBe(0)
    expect(table.applyDeletes()).toEqual({ done: 5000, errors: [] })
    expect(map.contents().size).toBe(0)
  })

  test('complete removes the owners that are not named', async () => {
    const { map, table } = setup()
    table.setFragment('a', [['aaaa', '1111']])
    table.setFragment('b', [['bbbb', '1111']])
    await table.readBack()
    table.applyUpdates()
    table.complete(new Set(['b']))
    table.applyDeletes()
    expect([...map.contents().keys()]).toEqual(['bbbb'])
  })

  test('rows that fail stay pending, the others are written', async () => {
    const { map, table } = setup()
    table.setFragment('o', numbered(100))
    map.broken.add('0005').add('000a')
    await table.readBack()
    const applied = table.applyUpdates()
    expect([applied.done, table.pending.updates]).toEqual([98, 2])
    expect(applied.errors.map((error) => error.message)).toEqual(['map np_test: update: bpf_map_update_batch: ENOMEM'])
    map.broken.clear()
    expect(table.applyUpdates()).toEqual({ done: 2, errors: [] })
    map.broken.add('0007')
    table.setFragment('o', [])
    expect(table.applyDeletes()).toMatchObject({ done: 99, errors: [{ map: 'np_test' }] })
    map.broken.clear()
    expect(table.applyDeletes()).toEqual({ done: 1, errors: [] })
  })

  test('a map that refuses everything is not asked for every row', async () => {
    const { map, table } = setup()
    const rows = numbered(1000)
    for (const [key] of rows) map.broken.add(key)
    table.setFragment('o', rows)
    await table.readBack()
    expect(table.applyUpdates().done).toBe(0)
    expect(table.pending.updates).toBe(1000)
    expect(map.calls.length).toBeLessThan(20)
  })

  test('a full map says so, and still takes replacements and deletes', async () => {
    const { map, table } = setup(3)
    for (const key of ['aaaa', 'bbbb', 'zzzz']) map.poke(key, '0000')
    table.setFragment('o', [
      ['0new', '1111'],
      ['1new', '1111'],
      ['aaaa', '0000'],
      ['bbbb', '1111'],
    ])
    await table.readBack()
    const applied = table.applyUpdates()
    expect([applied.done, table.pending.updates]).toEqual([1, 2])
    expect(applied.errors.map((error) => error.message)).toEqual(['map np_test: update: full: 2 rows wait for room among 3'])
    expect(table.applyDeletes()).toMatchObject({ done: 1 })
    expect(table.applyUpdates()).toMatchObject({ done: 1 })
    expect([...map.contents()].sort()).toEqual([
      ['0new', '1111'],
      ['aaaa', '0000'],
      ['bbbb', '1111'],
    ])
  })

  test('what a stranger changed is found and repaired', async () => {
    const { map, table } = setup()
    table.setFragment('o', numbered(10))
    await table.readBack()
    table.applyUpdates()
    map.poke('0001', undefined)
    map.poke('0002', 'evil')
    map.poke('wild', 'evil')
    expect(await table.readBack()).toEqual({ missing: 1, changed: 1, foreign: 1 })
    table.applyUpdates()
    table.applyDeletes()
    expect([...map.contents()].sort()).toEqual(numbered(10))
    expect(await table.readBack()).toEqual({ missing: 0, changed: 0, foreign: 0 })
  })

  test('claims may change while a read-back compares', async () => {
    const { map, table } = setup()
    table.setFragment('a', numbered(10_000))
    await table.readBack()
    table.applyUpdates()
    const reading = table.readBack()
    // after the first slice was compared, before the last
    await new Promise((resolve) => setImmediate(resolve))
    table.setFragment('a', numbered(9_999, 'new '))
    table.setFragment('b', [['wxyz', 'bbbb']])
    expect(await reading).toEqual({ missing: 0, changed: 0, foreign: 0 })
    expect(table.pending).toEqual({ updates: 10_000, deletes: 1 })
    table.applyUpdates()
    table.applyDeletes()
    expect(new Map(map.contents())).toEqual(new Map([...numbered(9_999, 'new '), ['wxyz', 'bbbb']]))
  })

  test('a map that cannot be read is an error that names it', async () => {
    const { map, table } = setup()
    map.close()
    await expect(table.readBack()).rejects.toMatchObject({ code: 'MAP', map: 'np_test', op: 'read back' })
  })

  test('property: owners, strangers and failures in any order end in what the owners want', async () => {
    const key = fc.constantFrom('aaaa', 'bbbb', 'cccc', 'dddd')
    const value = fc.constantFrom('1111', '2222')
    const step = fc.oneof(
      fc.record({
        do: fc.constant('fragment' as const),
        owner: fc.constantFrom('o1', 'o2', 'o3'),
        rows: fc.uniqueArray(fc.tuple(key, value), { selector: ([of]) => of }),
      }),
      fc.record({ do: fc.constant('apply' as const), broken: fc.subarray(['aaaa', 'bbbb', 'cccc', 'dddd']) }),
      fc.record({ do: fc.constant('poke' as const), key, value: fc.option(value, { nil: undefined }) }),
      fc.record({ do: fc.constant('readBack' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { map, table } = setup()
        const owners = new Map<string, [string, string][]>()
        for (const now of steps) {
          if (now.do === 'fragment') {
            table.setFragment(now.owner, now.rows)
            owners.set(now.owner, now.rows)
          } else if (now.do === 'poke') map.poke(now.key, now.value)
          else if (now.do === 'readBack') await table.readBack()
          else {
            for (const of of now.broken) map.broken.add(of)
            table.applyUpdates()
            table.applyDeletes()
            map.broken.clear()
          }
        }
        await table.readBack()
        table.applyUpdates()
        table.applyDeletes()
        const expected = new Map(
          [...owners]
            .sort()
            .reverse()
            .flatMap(([, rows]) => rows),
        )
        expect(new Map([...map.contents()].sort())).toEqual(new Map([...expected].sort()))
      }),
      { numRuns: 300 },
    )
  })
})

// SPDX-License-Identifier: Apache-2.0
/** What the data plane relies on in a map; `FakeMap` and the kernel's hash maps run the same suite. Layer: test. */
import { afterEach, describe, expect, test } from 'vitest'
import { chunksOf, type ChunkedMap } from '#agent/maps/chunks.ts'
import type { TableMap } from '#agent/dataplane/maps/map-table.ts'

/** The part of the addon's `BpfMap` that the fake has as well. */
export interface ContractMap extends TableMap, ChunkedMap {
  info(): { readonly name: string; readonly maxEntries: number }
  lookup(key: Uint8Array): Buffer | undefined
  update(key: Uint8Array, value: Uint8Array, flags?: number): void
  delete(key: Uint8Array): boolean
  nextKey(key: Uint8Array | undefined): Buffer | undefined
  deleteSame(keys: Uint8Array, values: Uint8Array, count: number): number
  close(): void
}

const [NO_EXIST, EXIST] = [1, 2]

/** `make` gives an empty map with keys of 4 bytes and values of 6, which takes at least `maxEntries` and less than
 * twice as many. */
export function describeMapContract(title: string, make: (maxEntries: number) => ContractMap): void {
  describe(title, () => {
    const made: ContractMap[] = []
    const open = (maxEntries = 100): ContractMap => {
      const map = make(maxEntries)
      made.push(map)
      return map
    }
    afterEach(() => {
      for (const map of made.splice(0)) map.close()
    })

    test('says its sizes', () => {
      const map = open(100)
      expect([map.keyBytes, map.valueBytes, map.info().maxEntries, map.info().name]).toEqual([4, 6, 100, 'np_contract'])
    })

    test('single rows', () => {
      const map = open()
      expect([map.lookup(key(1)), map.delete(key(1)), map.nextKey(undefined)]).toEqual([undefined, false, undefined])
      map.update(key(1), value(7))
      map.update(key(1), value(8))
      expect(map.lookup(key(1))).toEqual(value(8))
      expect([map.delete(key(1)), map.lookup(key(1))]).toEqual([true, undefined])
    })

    test('flags of an update', () => {
      const map = open()
      expect(code(() => map.update(key(1), value(1), EXIST))).toBe('ENOENT')
      map.update(key(1), value(1), NO_EXIST)
      expect(code(() => map.update(key(1), value(2), NO_EXIST))).toBe('EEXIST')
      map.update(key(1), value(3), EXIST)
      expect(map.lookup(key(1))).toEqual(value(3))
    })

    test('lengths are checked', () => {
      const map = open()
      expect(code(() => map.lookup(Buffer.alloc(3)))).toBe('EINVAL')
      expect(code(() => map.update(Buffer.alloc(5), value(1)))).toBe('EINVAL')
      expect(code(() => map.update(key(1), Buffer.alloc(5)))).toBe('EINVAL')
      expect(code(() => map.updateBatch(Buffer.alloc(8), Buffer.alloc(11), 2))).toBe('EINVAL')
      expect(code(() => map.deleteBatch(Buffer.alloc(7), 2))).toBe('EINVAL')
    })

    test('batches: new rows, replaced rows, none', async () => {
      const map = open(5000)
      expect(map.updateBatch(keys(0, 3000), values(0, 3000), 3000)).toBe(3000)
      expect(map.updateBatch(keys(2000, 4000), values(2001, 4001), 2000)).toBe(2000)
      expect(map.updateBatch(Buffer.alloc(0), Buffer.alloc(0), 0)).toBe(0)
      const rows = await contents(map)
      expect(rows.size).toBe(4000)
      expect([rows.get(1999), rows.get(2000), rows.get(3999)]).toEqual([1999, 2001, 4000])
    })

    test('a batch into a full map says how many it did, and replacing still works', async () => {
      const map = open(10)
      const failure = caught(() => map.updateBatch(keys(0, 50), values(0, 50), 50))
      expect(failure).toMatchObject({ code: 'E2BIG', op: expect.any(String) as string })
      const rows = await contents(map)
      expect(failure).toMatchObject({ done: rows.size })
      expect(rows.size).toBeGreaterThanOrEqual(10)
      expect(map.updateBatch(keys(0, 5), values(100, 105), 5)).toBe(5)
      expect((await contents(map)).get(4)).toBe(104)
    })

    test('deleting a batch skips what is not there and counts what was', async () => {
      const map = open()
      map.updateBatch(keys(0, 10), values(0, 10), 10)
      map.delete(key(4))
      expect(map.deleteBatch(keys(2, 14), 12)).toBe(7)
      expect([...(await contents(map)).keys()].sort()).toEqual([0, 1])
      expect(map.deleteBatch(keys(2, 14), 12)).toBe(0)
      expect(map.deleteBatch(Buffer.alloc(0), 0)).toBe(0)
    })

    test('a walk from key to key meets every row once', () => {
      const map = open()
      map.updateBatch(keys(0, 50), values(0, 50), 50)
      const met = new Set<number>()
      for (let at = map.nextKey(undefined); at !== undefined; at = map.nextKey(at)) {
        expect(met.has(at.readUInt32LE())).toBe(false)
        met.add(at.readUInt32LE())
      }
      expect(met.size).toBe(50)
    })

    test('parts have every row once, also when those before are deleted meanwhile', async () => {
      const map = open(500)
      map.updateBatch(keys(0, 300), values(0, 300), 300)
      const met: number[] = []
      for await (const { keys: some, values: theirs, count } of chunksOf(map, 50)) {
        for (let at = 0; at < count; at++) {
          expect(theirs.readUInt32LE(at * 6)).toBe(some.readUInt32LE(at * 4))
          met.push(some.readUInt32LE(at * 4))
        }
        const half = Math.floor(count / 2)
        map.deleteBatch(some.subarray(0, 4 * half), half)
      }
      expect([met.length >= 300, new Set(met).size]).toEqual([true, 300])
    })

    test('rows are deleted that are as they were read', async () => {
      const map = open()
      map.updateBatch(keys(0, 4), values(0, 4), 4)
      map.update(key(2), value(99))
      map.delete(key(3))
      expect(map.deleteSame(keys(0, 5), values(0, 5), 5)).toBe(2)
      expect([...(await contents(map))]).toEqual([[2, 99]])
      expect(code(() => map.deleteSame(keys(0, 1), values(0, 1), 2))).toBe('EINVAL')
    })

    test('an empty map is read as such', async () => {
      expect((await contents(open())).size).toBe(0)
    })

    test('a closed map refuses', async () => {
      const map = open()
      map.close()
      map.close()
      expect(code(() => map.lookup(key(1)))).toBe('EBADF')
      expect(code(() => map.updateBatch(keys(0, 1), values(0, 1), 1))).toBe('EBADF')
      await expect((async () => map.dump())()).rejects.toMatchObject({ code: 'EBADF' })
    })
  })
}

function key(number: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(number)
  return bytes
}

function value(number: number): Buffer {
  return Buffer.concat([key(number), Buffer.from('ab')])
}

function keys(from: number, to: number): Buffer {
  return Buffer.concat(Array.from({ length: to - from }, (_, at) => key(from + at)))
}

function values(from: number, to: number): Buffer {
  return Buffer.concat(Array.from({ length: to - from }, (_, at) => value(from + at)))
}

/** Key → number in the value; fails when a value is not whole. */
async function contents(map: ContractMap): Promise<Map<number, number>> {
  const dump = await map.dump()
  expect([dump.keys.length, dump.values.length]).toEqual([dump.count * 4, dump.count * 6])
  const rows = new Map<number, number>()
  for (let at = 0; at < dump.count; at++) {
    expect(dump.values.toString('latin1', at * 6 + 4, at * 6 + 6)).toBe('ab')
    rows.set(dump.keys.readUInt32LE(at * 4), dump.values.readUInt32LE(at * 6))
  }
  expect(rows.size).toBe(dump.count)
  return rows
}

function caught(action: () => unknown): unknown {
  try {
    action()
    return undefined
  } catch (thrown) {
    return thrown
  }
}

function code(action: () => unknown): unknown {
  const thrown = caught(action)
  return thrown instanceof Error && 'code' in thrown ? thrown.code : thrown
}

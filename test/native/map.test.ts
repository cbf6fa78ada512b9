// SPDX-License-Identifier: Apache-2.0
/** BpfMap: single entries, batches and dumps, with the kernel's batch commands and without. Layer: test. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { BpfMap, possibleCpus, setBatchCalls } from '#native'
import { codeOf, createMap, errorCode, isRoot, makePins, MAP, PINS, removePins, u32 } from './support.ts'

const NO_PREALLOC = 1

/** Keys first … first + count - 1; the value is twice the key. */
function rows(first: number, count: number): { keys: Buffer; values: Buffer; count: number } {
  const numbers = Array.from({ length: count }, (_, index) => first + index)
  return { keys: u32(...numbers), values: u32(...numbers.flatMap((number) => [number * 2, 0])), count }
}

function put(map: BpfMap, first: number, count: number): number {
  const { keys, values } = rows(first, count)
  return map.updateBatch(keys, values, count)
}

async function dumped(map: BpfMap): Promise<Map<number, number>> {
  const { keys, values, count } = await map.dump()
  expect(keys.length).toBe(count * map.keyBytes)
  expect(values.length).toBe(count * map.valueBytes)
  const entries = Array.from(
    { length: count },
    (_, index) => [keys.readUInt32LE(index * 4), values.readUInt32LE(index * map.valueBytes)] as const,
  )
  const found = new Map(entries)
  expect(found.size).toBe(count)
  return found
}

describe.skipIf(!isRoot)('single entries', () => {
  test('hash: update, lookup, delete, next key', () => {
    const map = createMap({ type: MAP.hash })
    expect([map.keyBytes, map.valueBytes]).toEqual([4, 8])
    expect(map.nextKey(undefined)).toBeUndefined()
    map.update(u32(1), u32(2, 3))
    expect(map.lookup(u32(1))).toEqual(u32(2, 3))
    expect(map.lookup(u32(9))).toBeUndefined()
    expect(map.nextKey(undefined)).toEqual(u32(1))
    expect(map.nextKey(u32(1))).toBeUndefined()
    expect(codeOf(() => map.update(u32(1), u32(0, 0), 1))).toBe('EEXIST')
    expect(codeOf(() => map.update(u32(9), u32(0, 0), 2))).toBe('ENOENT')
    expect([map.delete(u32(1)), map.delete(u32(1))]).toEqual([true, false])
  })

  test('wrong lengths never reach the kernel', () => {
    const map = createMap({ type: MAP.hash })
    expect(codeOf(() => map.lookup(Buffer.alloc(3)))).toBe('EINVAL')
    expect(codeOf(() => map.update(u32(1), Buffer.alloc(7)))).toBe('EINVAL')
    expect(codeOf(() => map.update(u32(1, 2), Buffer.alloc(8)))).toBe('EINVAL')
    expect(codeOf(() => map.updateBatch(u32(1, 2), Buffer.alloc(8), 2))).toBe('EINVAL')
    expect(codeOf(() => map.deleteBatch(u32(1, 2), 3))).toBe('EINVAL')
    expect(codeOf(() => map.updateFd(u32(1), map))).toBe('EINVAL')
  })

  test('array: fixed keys', () => {
    const map = createMap({ type: MAP.array, maxEntries: 4 })
    map.update(u32(3), u32(7, 0))
    expect(map.lookup(u32(3))).toEqual(u32(7, 0))
    expect(codeOf(() => map.update(u32(4), u32(7, 0)))).toBe('E2BIG')
    expect(map.lookup(u32(4))).toBeUndefined()
    expect(codeOf(() => map.delete(u32(3)))).toBe('EINVAL')
  })

  test('per-CPU array: a stride for every possible CPU', () => {
    const map = createMap({ type: MAP.percpuArray, valueSize: 12, maxEntries: 2 })
    expect(map.valueBytes).toBe(16 * possibleCpus())
    const value = Buffer.alloc(map.valueBytes)
    value.writeUInt32LE(5, map.valueBytes - 16)
    map.update(u32(1), value)
    expect(map.lookup(u32(1))).toEqual(value)
    expect(codeOf(() => map.update(u32(1), Buffer.alloc(12)))).toBe('EINVAL')
  })

  test('queue: no keys', () => {
    const map = createMap({ type: MAP.queue, keySize: 0 })
    map.update(Buffer.alloc(0), u32(1, 2))
    expect(map.lookup(Buffer.alloc(0))).toEqual(u32(1, 2))
  })

  test('attributes the kernel refuses', () => {
    expect(codeOf(() => createMap({ type: MAP.hash, maxEntries: 0 }))).toBe('EINVAL')
    expect(codeOf(() => createMap({ type: MAP.array, flags: 1 }))).toBe('EINVAL')
  })
})

describe.skipIf(!isRoot)('pins and ids', () => {
  beforeAll(makePins)
  afterAll(removePins)

  test('a pin outlives the handle', () => {
    const map = createMap({ type: MAP.hash })
    map.update(u32(1), u32(2, 0))
    map.pin(`${PINS}/map`)
    const { id } = map.info()
    map.close()
    map.close()
    expect(codeOf(() => map.lookup(u32(1)))).toBe('EBADF')
    const again = BpfMap.openPin(`${PINS}/map`)
    expect(again.lookup(u32(1))).toEqual(u32(2, 0))
    expect(BpfMap.openId(id).info()).toEqual(again.info())
    expect(codeOf(() => again.pin(`${PINS}/map`))).toBe('EEXIST')
    expect(codeOf(() => BpfMap.openId(0xfffffff))).toBe('ENOENT')
    expect([BpfMap.nextId(id - 1), BpfMap.nextId(0xfffffff)]).toEqual([id, undefined])
  })
})

describe.skipIf(!isRoot).each([true, false])('batches, with the kernel commands: %s', (on) => {
  beforeAll(() => setBatchCalls(on))
  afterAll(() => setBatchCalls(true))

  test('hash: write many, delete some, read all', async () => {
    const map = createMap({ type: MAP.hash, maxEntries: 20_000 })
    expect(put(map, 0, 10_000)).toBe(10_000)
    expect(map.deleteBatch(u32(1, 20_000, 3, 3, 20_001, 5), 6)).toBe(3)
    expect(map.deleteBatch(u32(30_000, 30_001), 2)).toBe(0)
    const found = await dumped(map)
    expect(found.size).toBe(9_997)
    expect([found.get(0), found.get(1), found.get(9_999)]).toEqual([0, undefined, 19_998])
  })

  test('nothing to do', async () => {
    const map = createMap({ type: MAP.hash })
    expect([put(map, 0, 0), map.deleteBatch(Buffer.alloc(0), 0), (await map.dump()).count]).toEqual([0, 0, 0])
  })

  test('a full map: the error tells how far it came', () => {
    const map = createMap({ type: MAP.hash, maxEntries: 100 })
    const { keys, values, count } = rows(0, 150)
    expect(() => map.updateBatch(keys, values, count)).toThrow(expect.objectContaining({ code: 'E2BIG', done: 100 }))
  })

  test('arrays', async () => {
    const map = createMap({ type: MAP.array, maxEntries: 5000 })
    put(map, 0, 5000)
    expect((await dumped(map)).get(4999)).toBe(9998)
    expect(codeOf(() => map.deleteBatch(u32(1), 1))).toBe('EINVAL')
  })

  test('per-CPU hash and array', async () => {
    for (const type of [MAP.percpuHash, MAP.percpuArray]) {
      const map = createMap({ type, maxEntries: 600 })
      const values = Buffer.alloc(600 * map.valueBytes)
      for (let key = 0; key < 600; key++) values.writeUInt32LE(key * 2, key * map.valueBytes)
      expect(map.updateBatch(rows(0, 600).keys, values, 600)).toBe(600)
      const found = await dumped(map)
      expect([found.size, found.get(599)]).toEqual([600, 1198])
    }
  })

  test('LRU: what is there is dumped once', async () => {
    const map = createMap({ type: MAP.lruHash, maxEntries: 1000 })
    expect(put(map, 0, 2000)).toBe(2000)
    const found = await dumped(map)
    expect(found.size).toBeGreaterThan(500)
    for (const [key, value] of found) expect(value).toBe(key * 2)
  })

  test('LPM trie', async () => {
    const map = createMap({ type: MAP.lpmTrie, keySize: 8, maxEntries: 500, flags: NO_PREALLOC })
    const prefixes = Buffer.concat(Array.from({ length: 400 }, (_, index) => Buffer.from([32, 0, 0, 0, 10, 0, index >> 8, index & 255])))
    expect(map.updateBatch(prefixes, Buffer.alloc(400 * 8, 1), 400)).toBe(400)
    const { keys, count } = await map.dump()
    expect(count).toBe(400)
    expect(new Set(Array.from({ length: count }, (_, index) => keys.toString('hex', index * 8, index * 8 + 8))).size).toBe(400)
  })

  test('a dump while the map changes has every row that stays, and none twice', async () => {
    const map = createMap({ type: MAP.hash, maxEntries: 30_000, flags: NO_PREALLOC })
    put(map, 0, 10_000)
    for (let round = 0; round < 5; round++) {
      put(map, 10_000, 10_000)
      const dump = dumped(map)
      for (let slice = 0; slice < 20; slice++) map.deleteBatch(rows(10_000 + slice * 500, 500).keys, 500)
      const found = await dump
      for (let key = 0; key < 10_000; key++) if (found.get(key) !== key * 2) throw new Error(`row ${key} is missing`)
    }
  })

  test('parts have every row once, and leave off where there is none', async () => {
    for (const type of [MAP.hash, MAP.lruHash]) {
      const map = createMap({ type, maxEntries: 5000 })
      expect(await map.readChunk(undefined, 100)).toMatchObject({ count: 0, next: undefined })
      put(map, 0, 3000)
      const there = (await dumped(map)).size
      const found = new Map<number, number>()
      let parts = 0
      for (let cursor: Buffer | undefined, first = true; first || cursor !== undefined; first = false) {
        const { keys, values, count, next } = await map.readChunk(cursor, 100)
        expect([keys.length, values.length]).toEqual([count * 4, count * 8])
        for (let at = 0; at < count; at++) found.set(keys.readUInt32LE(at * 4), values.readUInt32LE(at * 8))
        cursor = next
        parts++
      }
      expect([found.size, parts >= 30, [...found].every(([key, value]) => value === 2 * key)]).toEqual([there, true, true])
    }
  })

  test('a part goes on after close, and its cursor is checked', async () => {
    const map = createMap({ type: MAP.hash })
    put(map, 0, 5)
    const part = map.readChunk(undefined, 10)
    expect(codeOf(() => map.readChunk(Buffer.alloc(3), 10))).toBe('EINVAL')
    map.close()
    expect((await part).count).toBe(5)
    expect(codeOf(() => map.readChunk(undefined, 10))).toBe('EBADF')
  })

  test('rows are deleted that are as they were read', () => {
    const map = createMap({ type: MAP.hash })
    put(map, 0, 4)
    const { keys, values } = rows(0, 5)
    map.update(u32(2), u32(99, 0))
    map.delete(u32(3))
    expect(map.deleteSame(keys, values, 5)).toBe(2)
    expect([map.lookup(u32(0)), map.lookup(u32(1)), map.lookup(u32(2))]).toEqual([undefined, undefined, u32(99, 0)])
    expect(codeOf(() => map.deleteSame(keys, values, 6))).toBe('EINVAL')
  })

  test('a dump goes on after close', async () => {
    const map = createMap({ type: MAP.hash, maxEntries: 5000 })
    put(map, 0, 5000)
    const dump = map.dump()
    map.close()
    expect((await dump).count).toBe(5000)
  })

  test('a map type that cannot be walked says so', async () => {
    const map = createMap({ type: MAP.queue, keySize: 0 })
    expect(await map.dump().then(() => 'none', errorCode)).toMatch(/EINVAL|ENOTSUPP/)
  })
})

describe.skipIf(!isRoot)('the kernel and large buckets', () => {
  afterEach(() => setBatchCalls(true))

  test('a bucket larger than the chunk makes the chunk grow', async () => {
    const valueSize = 3 << 20 // so large that the first chunk is one entry
    const map = createMap({ type: MAP.hash, valueSize, maxEntries: 12 })
    const value = Buffer.alloc(valueSize)
    for (let key = 0; key < 12; key++) map.update(u32(key), value)
    expect((await map.dump()).count).toBe(12)
  })

  test('map types without batches take the other way by themselves', async () => {
    const map = createMap({ type: MAP.progArray, valueSize: 4 })
    expect((await map.dump()).count).toBe(0)
    expect(codeOf(() => map.updateBatch(u32(1), u32(0), 1))).not.toBe('none')
  })
})

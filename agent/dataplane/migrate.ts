// SPDX-License-Identifier: Apache-2.0
/** What is in an old map, carried into the one that takes its place. Layer: agent/dataplane. */
import type { BpfMap } from '#native'
import { btfById } from '#native'
import { LayoutError, errorCode } from '#lib/base/errors.ts'
import type { Btf } from '../maps/btf.ts'
import { enumValues, parseBtf } from '../maps/btf.ts'
import type { Copier } from '../maps/copy.ts'
import { keyCopier, valueCopier } from '../maps/copy.ts'
import { layoutOf } from '../maps/layout.ts'
import { BATCH_ROWS } from './batches.ts'

const NO_EXIST = 1

/** How one map's entries become another's. */
export interface Carrier {
  /** Copies all; returns how many. What no longer fits is left behind. */
  copyAll(): Promise<number>
  /** Copies what came into the old map since; never over what the new one has. Returns how many. */
  copyMissing(): Promise<number>
}

/** Both maps must carry BTF. Throws LayoutError where entries of the old layout cannot be told in the new one. */
export function hashCarrier(from: BpfMap, to: BpfMap): Carrier {
  const [fromTypes, toTypes] = [typesOf(from), typesOf(to)]
  const key = keyCopier(layoutOf(fromTypes.btf, fromTypes.keyTypeId), layoutOf(toTypes.btf, toTypes.keyTypeId))
  const value = valueCopier(layoutOf(fromTypes.btf, fromTypes.valueTypeId), layoutOf(toTypes.btf, toTypes.valueTypeId))
  return {
    copyAll: () => inChunks({ from, key, value }, (chunk) => writeAll(to, chunk)),
    copyMissing: () => inChunks({ from, key, value }, (chunk) => writeMissing(to, chunk)),
  }
}

/** Counter slots have names in two enums; a slot goes where its name is now. */
export function counterCarrier(from: BpfMap, to: BpfMap): Carrier {
  const [before, after] = [counterSlots(typesOf(from).btf), counterSlots(typesOf(to).btf)]
  return {
    copyAll: () => {
      let copied = 0
      for (const [name, slot] of before) {
        const target = after.get(name)
        const value = target === undefined ? undefined : from.lookup(u32(slot))
        if (target === undefined || value?.length !== to.valueBytes) continue
        to.update(u32(target), value)
        copied++
      }
      return Promise.resolve(copied)
    },
    copyMissing: () => Promise.resolve(0),
  }
}

/** Name ("DROP_TTL", "COUNT_CONNECT") → slot of np_counters: drop reasons first, then the other counters. */
export function counterSlots(btf: Btf): Map<string, number> {
  const [drops, counters] = [enumValues(btf, 'drop'), enumValues(btf, 'counter')]
  const max = drops.get('DROP_MAX') ?? 0
  const slots = new Map([...drops, ...[...counters].map(([name, value]): [string, number] => [name, max + value])])
  for (const end of ['DROP_MAX', 'COUNT_MAX']) slots.delete(end)
  return slots
}

interface Types {
  readonly btf: Btf
  readonly keyTypeId: number
  readonly valueTypeId: number
}

/** From the BTF that the map itself carries. Throws LayoutError when it has none. */
export function typesOf(map: BpfMap): Types {
  const { name, btfId, keyTypeId, valueTypeId } = map.info()
  if (btfId === 0 || keyTypeId === 0) throw new LayoutError(name, 'the map carries no BTF')
  return { btf: parseBtf(btfById(btfId)), keyTypeId, valueTypeId }
}

interface Chunk {
  readonly keys: Buffer
  readonly values: Buffer
  readonly count: number
}

/** The event loop gets its turn between chunks: there may be a million entries. */
async function inChunks(
  source: { readonly from: BpfMap; readonly key: Copier; readonly value: Copier },
  write: (chunk: Chunk) => number,
): Promise<number> {
  const dump = await source.from.dump()
  let written = 0
  for (let start = 0; start < dump.count; start += BATCH_ROWS) {
    const count = Math.min(BATCH_ROWS, dump.count - start)
    const keys = source.key.copy(dump.keys.subarray(start * source.key.fromSize), count)
    const values = source.value.copy(dump.values.subarray(start * source.value.fromSize), count)
    written += write({ keys, values, count })
    await new Promise((resolve) => setImmediate(resolve))
  }
  return written
}

/** A smaller hash may be full; an LRU makes room by itself. */
function writeAll(map: BpfMap, chunk: Chunk): number {
  try {
    return map.updateBatch(chunk.keys, chunk.values, chunk.count)
  } catch (thrown) {
    if (errorCode(thrown) !== 'E2BIG') throw thrown
    return thrown instanceof Error && 'done' in thrown && typeof thrown.done === 'number' ? thrown.done : 0
  }
}

function writeMissing(map: BpfMap, chunk: Chunk): number {
  const { keyBytes, valueBytes } = map
  let written = 0
  for (let at = 0; at < chunk.count; at++) {
    try {
      map.update(
        chunk.keys.subarray(at * keyBytes, (at + 1) * keyBytes),
        chunk.values.subarray(at * valueBytes, (at + 1) * valueBytes),
        NO_EXIST,
      )
      written++
    } catch (thrown) {
      const code = errorCode(thrown)
      if (code === 'E2BIG') return written
      if (code !== 'EEXIST') throw thrown
    }
  }
  return written
}

function u32(value: number): Uint8Array {
  return new Uint8Array(new Uint32Array([value]).buffer)
}

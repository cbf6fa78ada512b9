// SPDX-License-Identifier: Apache-2.0
/** What is in an old map, carried into the one that takes its place. Layer: agent/dataplane. */
import type { BpfMap } from '#native'
import { btfById } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { carriedTypes, type CarriedTypes } from '../../maps/map-btf.ts'
import type { Copier } from '../../maps/copy-entries.ts'
import { keyCopier, valueCopier } from '../../maps/copy-entries.ts'
import type { Chunk } from '../../maps/chunks.ts'
import { counterKey, counterSlots } from '../../maps/counters.ts'
import { layoutOf } from '../../maps/layout.ts'
import { BATCH_ROWS } from '../maps/map-writer.ts'

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
        const value = target === undefined ? undefined : from.lookup(counterKey(slot))
        if (target === undefined || value?.length !== to.valueBytes) continue
        to.update(counterKey(target), value)
        copied++
      }
      return Promise.resolve(copied)
    },
    copyMissing: () => Promise.resolve(0),
  }
}

/** From the BTF that the map itself carries. Throws LayoutError when it has none. */
export function typesOf(map: BpfMap): CarriedTypes {
  return carriedTypes(map.info(), btfById)
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

/** A smaller hash may be full. */
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

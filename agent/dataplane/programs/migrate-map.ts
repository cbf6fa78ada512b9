// SPDX-License-Identifier: Apache-2.0
/** What is in an old map, carried into the one that takes its place. Layer: agent/dataplane. */
import { setImmediate } from 'node:timers/promises'
import type { BpfMap } from '#native'
import { btfById, monotonicNs } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { catalogue, type MapName } from '../../maps/catalogue.ts'
import { carriedTypes, type CarriedTypes } from '../../maps/map-btf.ts'
import type { Copier } from '../../maps/copy-entries.ts'
import { keyCopier, valueCopier } from '../../maps/copy-entries.ts'
import type { Chunk } from '../../maps/chunks.ts'
import { counterKey, counterSlots } from '../../maps/counters.ts'
import { layoutOf } from '../../maps/layout.ts'
import { FlowReader, type FlowTimeouts } from '../conntrack/reader.ts'
import { GIVEN_UP } from '../conntrack/gc.ts'
import { BATCH_ROWS } from '../maps/map-writer.ts'

const NO_EXIST = 1

/** How one map's entries become another's. */
export interface Carrier {
  /** Copies all; returns how many. What no longer fits is left behind. */
  copyAll(): Promise<number>
  /** Copies what came into the old map since; never over what the new one has. Returns how many. */
  copyMissing(): Promise<number>
}

/** How a map of this name is carried over. Throws LayoutError where entries of the old layout cannot be told in the new
 * one. */
export function carrierOf(
  name: MapName,
  { from, to, timeouts }: { readonly from: BpfMap; readonly to: BpfMap; readonly timeouts: FlowTimeouts },
): Carrier {
  if (catalogue[name].perCpu) return counterCarrier(from, to)
  return hashCarrier(from, to, name === 'np_ct' ? idlenessOfFlows(to, timeouts) : undefined)
}

/** For how many ms the entry `at`, in the new layout, had been of no use at `now`: of a map that would be full those
 * with the most stay behind. */
type Idleness = (chunk: Chunk, at: number, now: number) => number

/** Longer than any flow has been idle. */
const LONG_MS = 1e15

/** Those that are evicted first stay behind before all others: one that is half open is asked for again. */
function idlenessOfFlows(map: BpfMap, timeouts: FlowTimeouts): Idleness {
  const reader = new FlowReader(typesOf(map).btf, timeouts)
  return (chunk, at, now) => {
    const { expiredMs, evictedFirst, idleMs } = reader.read(chunk, at, now)
    return expiredMs > 0 || evictedFirst ? LONG_MS + idleMs : idleMs
  }
}

/** Both maps must carry BTF. Without `idleness` all are carried that the new one has room for. */
function hashCarrier(from: BpfMap, to: BpfMap, idleness?: Idleness): Carrier {
  const [fromTypes, toTypes] = [typesOf(from), typesOf(to)]
  const key = keyCopier(layoutOf(fromTypes.btf, fromTypes.keyTypeId), layoutOf(toTypes.btf, toTypes.keyTypeId))
  const value = valueCopier(layoutOf(fromTypes.btf, fromTypes.valueTypeId), layoutOf(toTypes.btf, toTypes.valueTypeId))
  const carry = async (write: (map: BpfMap, chunk: Chunk) => number): Promise<number> => {
    const source = { dump: await from.dump(), key, value }
    const surplus = idleness && (await surplusOf(source, idleness, to.info().maxEntries))
    let written = 0
    for await (const chunk of chunksOf(source)) written += write(to, surplus === undefined ? chunk : without(chunk, surplus))
    return written
  }
  return { copyAll: () => carry(writeAll), copyMissing: () => carry(writeMissing) }
}

/** Counter slots have names in two enums; a slot goes where its name is now. */
function counterCarrier(from: BpfMap, to: BpfMap): Carrier {
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

/** Asked of each entry in its turn. */
type Choice = () => boolean

interface Source {
  readonly dump: Chunk
  readonly key: Copier
  readonly value: Copier
}

/** In the new layout. The event loop gets its turn between chunks: there may be a million entries. */
async function* chunksOf({ dump, key, value }: Source): AsyncGenerator<Chunk> {
  for (let start = 0; start < dump.count; start += BATCH_ROWS) {
    const count = Math.min(BATCH_ROWS, dump.count - start)
    const keys = key.copy(dump.keys.subarray(start * key.fromSize), count)
    const values = value.copy(dump.values.subarray(start * value.fromSize), count)
    yield { keys, values, count }
    await setImmediate()
  }
}

/** Tells which entries stay behind, so that a map of this size has room for new ones; undefined: none. */
async function surplusOf(source: Source, idleness: Idleness, maxEntries: number): Promise<Choice | undefined> {
  const surplus = Math.ceil(source.dump.count - (1 - GIVEN_UP) * maxEntries)
  if (surplus <= 0) return undefined
  const idle = new Float64Array(source.dump.count)
  const now = monotonicNs() / 1e6
  let next = 0
  for await (const chunk of chunksOf(source)) for (let at = 0; at < chunk.count; at++) idle[next++] = idleness(chunk, at, now)
  const longest = idle.toSorted().subarray(-surplus)
  const [least = 0] = longest
  let alike = longest.lastIndexOf(least) + 1
  next = 0
  return () => {
    const ms = idle[next++] ?? 0
    return ms > least || (ms === least && alike-- > 0)
  }
}

/** The chunk, whose bytes are moved, without what is chosen. */
function without({ keys, values, count }: Chunk, isChosen: Choice): Chunk {
  const [keyBytes, valueBytes] = [keys.length / count, values.length / count]
  let kept = 0
  for (let at = 0; at < count; at++) {
    if (isChosen()) continue
    keys.copyWithin(kept * keyBytes, at * keyBytes, (at + 1) * keyBytes)
    values.copyWithin(kept * valueBytes, at * valueBytes, (at + 1) * valueBytes)
    kept++
  }
  return { keys: keys.subarray(0, kept * keyBytes), values: values.subarray(0, kept * valueBytes), count: kept }
}

/** A smaller hash may be full. */
function writeAll(map: BpfMap, chunk: Chunk): number {
  if (chunk.count === 0) return 0
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

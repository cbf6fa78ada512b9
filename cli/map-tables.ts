// SPDX-License-Identifier: Apache-2.0
/** Maps as commands see them, decoded. Layer: cli (pure). */
import type { Btf } from '#agent/maps/btf.ts'
import type { MapCodecs, MapDefinition } from '#agent/maps/catalogue.ts'
import { chunksOf, type Chunk, type ChunkedMap } from '#agent/maps/chunks.ts'
import type { Counter } from '#agent/maps/counters.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { viewOf } from '#agent/maps/view.ts'

export type Entry<K, V> = readonly [key: K, value: V]

export interface Table<K, V> {
  /** Every entry, part by part: there may be a million. In no order. */
  parts(): AsyncIterable<readonly Entry<K, V>[]>
  get(key: K): V | undefined
  /** as the map itself carries it: its enums name flags and kinds */
  readonly btf: Btf
}

/** One that can be put back as it was. */
export interface WritableTable<K, V> extends Table<K, V> {
  set(key: K, value: V): void
  delete(key: K): void
}

export type CounterValue = Pick<Counter, 'kind' | 'name'> & { readonly value: number }

export interface Tables {
  /** Throws PinsError, or LayoutError when the map is of a version that we cannot read. */
  open<K, V>(definition: MapDefinition<K, V>): Table<K, V>
  /** what the programs have counted, of all CPUs together */
  counters(): readonly CounterValue[]
}

/** What it needs of a map; `BpfMap` has it. */
export interface ReadableMap extends ChunkedMap {
  lookup(key: Uint8Array): Uint8Array | undefined
}

export interface WritableMap extends ReadableMap {
  update(key: Uint8Array, value: Uint8Array): void
  delete(key: Uint8Array): boolean
}

/** entries read at a time */
const ROOM = 1024

export function tableOf<K, V>(map: ReadableMap, codecs: MapCodecs<K, V>, btf: Btf): Table<K, V> {
  // a lookup copies its key: one place serves all of them
  const sought = Buffer.alloc(codecs.key.size)
  const view = viewOf(sought)
  return {
    btf,
    get(key) {
      codecs.key.encode(key, view, 0)
      const value = map.lookup(sought)
      return value === undefined ? undefined : decodeBytes(codecs.value, value)
    },
    async *parts() {
      for await (const chunk of chunksOf(map, ROOM)) yield decoded(chunk, codecs)
    },
  }
}

export function writableTableOf<K, V>(map: WritableMap, codecs: MapCodecs<K, V>, btf: Btf): WritableTable<K, V> {
  return {
    ...tableOf(map, codecs, btf),
    set(key, value) {
      map.update(encodeBytes(codecs.key, key), encodeBytes(codecs.value, value))
    },
    delete(key) {
      map.delete(encodeBytes(codecs.key, key))
    },
  }
}

function decoded<K, V>(chunk: Chunk, { key, value }: MapCodecs<K, V>): Entry<K, V>[] {
  const [keys, values] = [viewOf(chunk.keys), viewOf(chunk.values)]
  return Array.from({ length: chunk.count }, (_, at) => [key.decode(keys, at * key.size), value.decode(values, at * value.size)])
}

/** For tables that are not large, or have to be sorted. */
export async function entriesOf<K, V>(table: Table<K, V>): Promise<Entry<K, V>[]> {
  const entries: Entry<K, V>[] = []
  for await (const part of table.parts()) entries.push(...part)
  return entries
}

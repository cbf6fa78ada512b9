// SPDX-License-Identifier: Apache-2.0
/** Pinned maps for tests of commands: in memory, with the types of a built object. Layer: test. */
import type { MapDefinition } from '#agent/maps/catalogue.ts'
import { counterSlots, namedCounters } from '#agent/maps/counters.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { tableOf, type CounterValue, type Entry, type Table, type Tables } from '../../../cli/map-tables.ts'
import { bindDeclared, builtObject } from '../compiled.ts'
import { FakeMap } from './fake-map.ts'

const { btf } = builtObject('tc')

export class FakeTables implements Tables {
  readonly #maps = new Map<string, FakeMap>()
  /** "no_backend" → 3 */
  readonly counts: Record<string, number> = {}

  put<K, V>(definition: MapDefinition<K, V>, ...entries: readonly Entry<K, V>[]): void {
    const { key, value } = bindDeclared(definition, btf)
    for (const [one, other] of entries) this.#map(definition).update(encodeBytes(key, one), encodeBytes(value, other))
  }

  open<K, V>(definition: MapDefinition<K, V>): Table<K, V> {
    return tableOf(this.#map(definition), bindDeclared(definition, btf), btf)
  }

  counters(): CounterValue[] {
    return namedCounters(counterSlots(btf)).map(({ kind, name }) => ({ kind, name, value: this.counts[name] ?? 0 }))
  }

  #map<K, V>(definition: MapDefinition<K, V>): FakeMap {
    const { key, value } = bindDeclared(definition, btf)
    const map =
      this.#maps.get(definition.name) ?? new FakeMap({ name: definition.name, keySize: key.size, valueSize: value.size, maxEntries: 1000 })
    this.#maps.set(definition.name, map)
    return map
  }
}

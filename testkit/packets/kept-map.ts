// SPDX-License-Identifier: Apache-2.0
/** A map that nothing but its test writes: its rows are known, and only those that differ are written.
 * Layer: testkit. */
import type { MapDefinition } from '#agent/maps/catalogue.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import type { Loaded } from './objects.ts'
import { TestMap } from './objects.ts'

interface Row<V> {
  readonly key: Buffer
  readonly bytes: Buffer
  readonly value: V
}

/** Rows by the text of their key; never changed once another owner has them. */
export type Rows<V> = ReadonlyMap<string, Row<V>>

export class KeptMap<K, V> {
  readonly #map: TestMap<K, V>
  readonly #gone: Buffer | undefined
  #written: Rows<V> = new Map()
  #wanted: Rows<V> = new Map()
  /** `#wanted`, while it has no other owner */
  #changing: Map<string, Row<V>> | undefined

  /** `gone`: what a row holds that is not there, in arrays, which lose none. */
  constructor(loaded: Loaded, definition: MapDefinition<K, V>, gone?: V) {
    this.#map = new TestMap(loaded, definition)
    this.#gone = gone === undefined ? undefined : encodeBytes(this.#map.codecs.value, gone)
  }

  get map(): TestMap<K, V>['map'] {
    return this.#map.map
  }

  get codecs(): TestMap<K, V>['codecs'] {
    return this.#map.codecs
  }

  /** What is wanted; `flush` writes it. */
  get rows(): Rows<V> {
    this.#changing = undefined
    return this.#wanted
  }

  set rows(rows: Rows<V>) {
    this.#changing = undefined
    this.#wanted = rows
  }

  set(key: K, value: V): void {
    const row = { key: encodeBytes(this.codecs.key, key), bytes: encodeBytes(this.codecs.value, value), value }
    this.#own().set(textOf(row.key), row)
  }

  get(key: K): V | undefined {
    return this.#wanted.get(textOf(encodeBytes(this.codecs.key, key)))?.value
  }

  delete(key: K): boolean {
    return this.#own().delete(textOf(encodeBytes(this.codecs.key, key)))
  }

  clear(): void {
    this.rows = new Map()
  }

  flush(): void {
    if (this.#wanted === this.#written) return
    for (const [text, { key }] of this.#written) if (!this.#wanted.has(text)) this.#remove(key)
    for (const [text, { key, bytes }] of this.#wanted) {
      const old = this.#written.get(text)?.bytes
      if (old === undefined || !bytes.equals(old)) this.map.update(key, bytes)
    }
    this.#written = this.rows
  }

  #own(): Map<string, Row<V>> {
    this.#changing ??= new Map(this.#wanted)
    this.#wanted = this.#changing
    return this.#changing
  }

  #remove(key: Buffer): void {
    if (this.#gone === undefined) this.map.delete(key)
    else this.map.update(key, this.#gone)
  }
}

function textOf(key: Buffer): string {
  return key.toString('latin1')
}

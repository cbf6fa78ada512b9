// SPDX-License-Identifier: Apache-2.0
/** Rows of compiled policy in the maps of loaded programs. Layer: testkit. */
import type { BpfMap } from '#native'
import type { MapCodecs, MapDefinition } from '#agent/maps/catalogue.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { PolicyRow } from '#agent/compile/policy/tables.ts'
import { wordsOf } from '#lib/base/bytes.ts'
import { RULE_CELLS, RULE_WORDS } from '#lib/base/bpf-constants.ts'
import { depthOf } from '#lib/base/ip.ts'
import type { Loaded } from './objects.ts'
import { TestMap } from './objects.ts'

/** A map by the values of its keys and rows. */
interface Writable<K, V> {
  readonly map: BpfMap
  readonly codecs: MapCodecs<K, V>
  set(key: K, value: V): void
  delete(key: K): boolean
  clear(): Promise<void> | void
}

export type OpenMap = <K, V>(definition: MapDefinition<K, V>) => Writable<K, V>

/** All but what addresses and devices have beside policy: np_addrs and np_hosts. */
export class PolicyMaps {
  readonly #bits
  readonly #ports
  readonly #pages
  readonly #rules
  readonly #nets

  constructor(loaded: Loaded, open: OpenMap = (definition) => new TestMap(loaded, definition)) {
    this.#bits = open(catalogue.np_bits)
    this.#ports = open(catalogue.np_ports)
    this.#pages = open(catalogue.np_pages)
    this.#rules = open(catalogue.np_rules)
    this.#nets = open(catalogue.np_nets)
  }

  /** One map operation. Returns the row's bytes. Throws when a row that is to go is not there. */
  write(row: Exclude<PolicyRow, { readonly table: 'ends' | 'hosts' }>, isGone: boolean): number {
    switch (row.table) {
      case 'bits':
        return put(this.#bits, row.key, isGone ? undefined : { ...row.value, word: wordsOf(row.value.word, RULE_WORDS) })
      case 'ports':
        return put(this.#ports, row.key, isGone ? undefined : { ...row.value, cell: wordsOf(row.value.cell, RULE_CELLS) })
      case 'pages':
        return put(this.#pages, row.key, isGone ? undefined : row.value)
      case 'rules':
        return put(this.#rules, row.key, isGone ? undefined : row.value.number)
      case 'nets': {
        const key = { prefix: depthOf(row.key.cidr), addr: row.key.cidr.addr }
        return put(this.#nets, key, isGone ? undefined : row.value.identity)
      }
    }
  }

  /** Rows in all of them. */
  async count(): Promise<number> {
    let rows = 0
    for (const { map } of this.#all) rows += (await map.dump()).count
    return rows
  }

  async clear(): Promise<void> {
    for (const map of this.#all) await map.clear()
  }

  close(): void {
    for (const { map } of this.#all) map.close()
  }

  get #all() {
    return [this.#bits, this.#ports, this.#pages, this.#rules, this.#nets]
  }
}

function put<K, V>(map: Writable<K, V>, key: K, value: V | undefined): number {
  if (value !== undefined) map.set(key, value)
  else if (!map.delete(key)) throw new Error('a row that is to go is not there')
  return map.codecs.key.size + map.codecs.value.size
}

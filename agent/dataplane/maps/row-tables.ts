// SPDX-License-Identifier: Apache-2.0
/** The tables that are made of `Desired` rows: splits fragments among them and follows interfaces that come and go.
 * Layer: agent/dataplane. */
import type { AddrRow, Fragment, RowOf, Table as TableName } from '../../compile/desired.ts'
import type { Entry } from '../../maps/byte-rows.ts'
import { ROW_TABLES } from './encode-rows.ts'
import type { ResolveInterface, RowWriters } from './encode-rows.ts'

/** What takes the rows of one table; `Table` does. */
export interface FragmentSink {
  setFragment(owner: string, entries: Iterable<Entry>): void
  complete(owners: ReadonlySet<string>): void
}

export interface RowTablesOptions<S> {
  readonly tables: Readonly<Record<TableName, S>>
  readonly writers: RowWriters
  readonly resolve: ResolveInterface
}

/** Writes nothing itself: the tables' own `apply…` do. */
export class RowTables<S extends FragmentSink = FragmentSink> {
  readonly tables: Readonly<Record<TableName, S>>
  readonly #writers: RowWriters
  readonly #resolve: ResolveInterface
  /** Address rows of owners that name an interface: local pods only, so few. */
  readonly #bound = new Map<string, readonly AddrRow[]>()

  constructor(options: RowTablesOptions<S>) {
    this.tables = options.tables
    this.#writers = options.writers
    this.#resolve = options.resolve
  }

  /** Replaces all rows of the fragment's owner in all tables. Throws LayoutError for a value that no struct can
   * hold, and then changes nothing. */
  setFragment(fragment: Fragment): void {
    const entries = new Map<TableName, Entry[]>()
    const bound: AddrRow[] = []
    for (const row of fragment.rows) {
      const entry = this.#encode(row)
      if (entry !== undefined) append(entries, row.table, entry)
      if (row.table === 'addrs') bound.push(row)
    }
    if (bound.some((row) => row.value.iface !== undefined)) this.#bound.set(fragment.owner, bound)
    else this.#bound.delete(fragment.owner)
    for (const name of ROW_TABLES) this.tables[name].setFragment(fragment.owner, entries.get(name) ?? [])
  }

  /** Removes the rows of every owner that is not named. */
  complete(owners: ReadonlySet<string>): void {
    for (const name of ROW_TABLES) this.tables[name].complete(owners)
    for (const owner of this.#bound.keys()) if (!owners.has(owner)) this.#bound.delete(owner)
  }

  /** An interface came, went or has another index: encodes the rows that name it once more. True when there were
   * any. */
  interfaceChanged(name: string): boolean {
    let found = false
    for (const [owner, rows] of this.#bound) {
      if (!rows.some((row) => row.value.iface === name)) continue
      this.tables.addrs.setFragment(
        owner,
        rows.map((row) => this.#encode(row)).filter((entry) => entry !== undefined),
      )
      found = true
    }
    return found
  }

  #encode<T extends TableName>(row: RowOf<T>): Entry | undefined {
    return this.#writers[row.table](row, this.#resolve)
  }
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}

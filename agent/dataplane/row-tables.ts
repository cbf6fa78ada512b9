// SPDX-License-Identifier: Apache-2.0
/** The three tables that are made of `Desired` rows: splits fragments among them and follows interfaces that come and go. Layer: agent/dataplane. */
import type { Addr } from '#lib/base/ip.ts'
import { unreachable } from '#lib/base/result.ts'
import type { AddrRow, Fragment, Row, Table as TableName } from '../compile/desired.ts'
import type { MapCodecs } from '../maps/catalogue.ts'
import type { AddrInfo, Backend, BackendKey, Frontend, FrontendKey } from '../maps/shapes.ts'
import type { Entry, EntryWriter } from '../maps/text.ts'
import { decodeText, entryWriter } from '../maps/text.ts'
import type { ResolveInterface } from './rows.ts'
import { addrStructs, backendStructs, frontendStructs } from './rows.ts'
import type { Table } from './table.ts'

export interface RowCodecs {
  readonly frontends: MapCodecs<FrontendKey, Frontend>
  readonly backends: MapCodecs<BackendKey, Backend>
  readonly addrs: MapCodecs<Addr, AddrInfo>
}

export interface RowTablesOptions {
  readonly tables: Readonly<Record<TableName, Table>>
  readonly codecs: RowCodecs
  readonly resolve: ResolveInterface
}

/** A key that several objects claim, decoded. */
export type RowContest =
  | { readonly table: 'frontends'; readonly key: FrontendKey; readonly winner: string; readonly losers: readonly string[] }
  | { readonly table: 'backends'; readonly key: BackendKey; readonly winner: string; readonly losers: readonly string[] }
  | { readonly table: 'addrs'; readonly key: Addr; readonly winner: string; readonly losers: readonly string[] }

/** Writes nothing itself: the tables' own `apply…` do. */
export class RowTables {
  readonly tables: Readonly<Record<TableName, Table>>
  readonly #codecs: RowCodecs
  readonly #resolve: ResolveInterface
  readonly #frontend: EntryWriter<FrontendKey, Frontend>
  readonly #backend: EntryWriter<BackendKey, Backend>
  readonly #addr: EntryWriter<Addr, AddrInfo>
  /** Address rows of owners that name an interface: local pods only, so few. */
  readonly #bound = new Map<string, readonly AddrRow[]>()

  constructor(options: RowTablesOptions) {
    this.tables = options.tables
    this.#codecs = options.codecs
    this.#resolve = options.resolve
    this.#frontend = entryWriter(options.codecs.frontends)
    this.#backend = entryWriter(options.codecs.backends)
    this.#addr = entryWriter(options.codecs.addrs)
  }

  /** Replaces all rows of the fragment's owner in all tables. Throws LayoutError for a value that no struct can hold, and then changes nothing. */
  setFragment(fragment: Fragment): void {
    const entries: Record<TableName, Entry[]> = { frontends: [], backends: [], addrs: [] }
    const bound: AddrRow[] = []
    for (const row of fragment.rows) {
      const entry = this.#encode(row)
      if (entry !== undefined) entries[row.table].push(entry)
      if (row.table === 'addrs') bound.push(row)
    }
    if (bound.some((row) => row.value.iface !== undefined)) this.#bound.set(fragment.owner, bound)
    else this.#bound.delete(fragment.owner)
    this.tables.frontends.setFragment(fragment.owner, entries.frontends)
    this.tables.backends.setFragment(fragment.owner, entries.backends)
    this.tables.addrs.setFragment(fragment.owner, entries.addrs)
  }

  /** Removes the rows of every owner that is not named. */
  complete(owners: ReadonlySet<string>): void {
    for (const table of Object.values(this.tables)) table.complete(owners)
    for (const owner of this.#bound.keys()) if (!owners.has(owner)) this.#bound.delete(owner)
  }

  /** An interface came, went or has another index: encodes the rows that name it once more. True when there were any. */
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

  /** Interfaces that rows wait for. */
  waitingFor(): Set<string> {
    const names = new Set<string>()
    for (const rows of this.#bound.values()) {
      for (const { value } of rows) if (value.iface !== undefined && this.#resolve(value.iface) === undefined) names.add(value.iface)
    }
    return names
  }

  contests(): RowContest[] {
    const { frontends, backends, addrs } = this.#codecs
    return [
      ...this.tables.frontends
        .contests()
        .map((contest): RowContest => ({ ...contest, table: 'frontends', key: decodeText(frontends.key, contest.key) })),
      ...this.tables.backends
        .contests()
        .map((contest): RowContest => ({ ...contest, table: 'backends', key: decodeText(backends.key, contest.key) })),
      ...this.tables.addrs
        .contests()
        .map((contest): RowContest => ({ ...contest, table: 'addrs', key: decodeText(addrs.key, contest.key) })),
    ]
  }

  #encode(row: Row): Entry | undefined {
    switch (row.table) {
      case 'frontends':
        return this.#frontend(frontendStructs(row))
      case 'backends':
        return this.#backend(backendStructs(row))
      case 'addrs': {
        const structs = addrStructs(row, this.#resolve)
        return structs === undefined ? undefined : this.#addr(structs)
      }
      default:
        return unreachable(row)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
/** The kinds of tables that rows of policy go to. Layer: agent/dataplane. */
import type { PolicyRow, SetId } from '#agent/compile/policy/tables.ts'
import type { Interface } from '#agent/interfaces/table.ts'
import type { HostKey, HostSets } from '#agent/maps/shapes.ts'
import type { Entry } from '#agent/maps/byte-rows.ts'
import type { Compare } from '#lib/base/order.ts'
import type { Device } from '../host/devices.ts'
import { SELF_OWNER } from '../host/node-rows.ts'
import type { Applied, MapTable } from '../maps/map-table.ts'
import type { AddrMerger } from './addr-merger.ts'
import type { HostEndpointRules } from './host-endpoint-rules.ts'

/** Rows are staged, which makes them wanted, and then settled, which brings the kernel there; that may take several
 * attempts. */
export interface TableWriter {
  /** Throws LayoutError for a row that no struct can hold, and then changes nothing. */
  stage(rows: readonly PolicyRow[], isGone: boolean): void
  /** In the order in which rows were staged, up to the first that fails. */
  settle(): Applied
  /** All that follows, up to `sweep`, is the whole. */
  beginWhole(): void
  /** Stages the removal of what was not named since, and of what only the kernel has. */
  sweep(): void
}

/** One row for one row. */
export class PlainTableWriter implements TableWriter {
  readonly #table: MapTable
  readonly #write: (row: PolicyRow) => Entry
  readonly #sweepOrder: Compare<string> | undefined
  #staged: string[] = []
  /** keys of the unfinished learn step that the kernel had no row of before */
  #fresh: string[] = []
  #old = new Set<string>()

  /** `sweepOrder`: of keys that go when a whole is complete */
  constructor(of: { readonly table: MapTable; readonly write: (row: PolicyRow) => Entry; readonly sweepOrder?: Compare<string> }) {
    this.#table = of.table
    this.#write = of.write
    this.#sweepOrder = of.sweepOrder
  }

  stage(rows: readonly PolicyRow[], isGone: boolean): void {
    for (const [key, value] of rows.map(this.#write)) {
      if (isGone) this.#table.rows.unwant(key)
      else this.#table.rows.want(key, value)
      this.#old.delete(key)
      this.#staged.push(key)
    }
  }

  settle(): Applied {
    const applied = this.#table.settle(this.#staged)
    if (applied.errors.length === 0) this.#staged = []
    return applied
  }

  /** As `stage`, of rows that nothing refers to before the step is done. */
  learn(rows: readonly PolicyRow[]): void {
    this.#fresh = rows.map((row) => this.#write(row)[0]).filter((key) => this.#table.actualAt(key) === undefined)
    this.stage(rows, false)
  }

  /** The step is done. */
  keep(): void {
    this.#fresh = []
  }

  /** Stages the removal of rows that were new with the step: it was never done, so nothing refers to them. */
  withdraw(): void {
    for (const key of this.#fresh) this.#table.rows.unwant(key)
    this.#staged = this.#fresh
    this.#fresh = []
  }

  beginWhole(): void {
    this.#staged = []
    this.#old = new Set(this.#table.wantedKeys())
  }

  sweep(): void {
    for (const key of this.#old) this.#table.rows.unwant(key)
    this.#old.clear()
    const excess = [...this.#table.excessKeys()]
    for (const key of this.#sweepOrder === undefined ? excess : excess.sort(this.#sweepOrder)) this.#staged.push(key)
  }
}

/** Halves of rows of np_addrs. What only the kernel has is not for us to judge. */
export class AddrTableWriter implements TableWriter {
  readonly #table: MapTable
  readonly #join: AddrMerger
  readonly #write: (row: PolicyRow) => Entry
  #staged: string[] = []
  #old = new Set<string>()

  constructor(of: { readonly table: MapTable; readonly join: AddrMerger; readonly write: (row: PolicyRow) => Entry }) {
    this.#table = of.table
    this.#join = of.join
    this.#write = of.write
  }

  /** These rows are to be staged later. */
  announce(rows: readonly PolicyRow[]): void {
    for (const [key] of rows.map(this.#write)) this.#join.announce(key)
  }

  /** What was announced comes in other rows. */
  announceInstead(rows: readonly PolicyRow[], announced: readonly PolicyRow[]): void {
    this.announce(rows)
    for (const [key] of announced.map(this.#write)) this.#join.withdraw(key)
  }

  stage(rows: readonly PolicyRow[], isGone: boolean): void {
    for (const [key, value] of rows.map(this.#write)) {
      this.#join.rule(key, isGone ? undefined : value)
      this.#old.delete(key)
      this.#staged.push(key)
    }
  }

  settle(): Applied {
    const applied = this.#table.settle(this.#staged)
    if (applied.errors.length === 0) this.#staged = []
    return applied
  }

  beginWhole(): void {
    this.#staged = []
    this.#join.forgetAnnounced()
    this.#old = new Set(this.#join.ruled)
  }

  sweep(): void {
    for (const key of this.#old) this.#join.rule(key, undefined)
    for (const key of this.#old) this.#staged.push(key)
    this.#old.clear()
  }
}

/** Rules of host endpoints, by device. A few rows, which are all made again whenever one changes. */
export class HostTableWriter implements TableWriter {
  readonly #rules: HostEndpointRules
  readonly #hosts: Rows<readonly [HostKey, HostSets]>
  readonly #untracked: Rows<readonly [number, SetId]>
  #old = new Set<string>()

  constructor(of: {
    readonly rules: HostEndpointRules
    readonly hosts: Rows<readonly [HostKey, HostSets]>
    /** the same once more, by ifindex, as XDP looks for it */
    readonly untracked: Rows<readonly [number, SetId]>
  }) {
    this.#rules = of.rules
    this.#hosts = of.hosts
    this.#untracked = of.untracked
  }

  /** devices with rules for every packet that comes in */
  get untracked(): readonly Interface[] {
    return this.#rules.untracked
  }

  /** endpoints that no device is, and why */
  get strays(): ReadonlyMap<string, string> {
    return this.#rules.strays
  }

  setDevices(devices: readonly Device[]): void {
    this.#rules.setDevices(devices)
    this.#refresh()
  }

  stage(rows: readonly PolicyRow[], isGone: boolean): void {
    for (const row of rows) {
      if (row.table !== 'hosts') continue
      this.#rules.set(row.key.endpoint, isGone ? undefined : row.value)
      this.#old.delete(row.key.endpoint)
    }
    this.#refresh()
  }

  settle(): Applied {
    let done = 0
    for (const { table } of [this.#hosts, this.#untracked])
      for (const applied of [table.applyUpdates(), table.applyDeletes()]) {
        done += applied.done
        if (applied.errors.length > 0) return { done, errors: applied.errors }
      }
    return { done, errors: [] }
  }

  beginWhole(): void {
    this.#old = new Set(this.#rules.endpoints)
  }

  sweep(): void {
    for (const endpoint of this.#old) this.#rules.set(endpoint, undefined)
    this.#old.clear()
    this.#refresh()
  }

  #refresh(): void {
    this.#hosts.table.setFragment(SELF_OWNER, this.#rules.rows().map(this.#hosts.write))
    this.#untracked.table.setFragment(SELF_OWNER, this.#rules.untrackedRows().map(this.#untracked.write))
  }
}

interface Rows<R> {
  readonly table: MapTable
  readonly write: (row: R) => Entry
}

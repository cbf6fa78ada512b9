// SPDX-License-Identifier: Apache-2.0
/** Everything that brings policy to one generation of maps. Layer: agent/dataplane. */
import { recordOf } from '#lib/base/object.ts'
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { decodeText, entryWriter } from '#agent/maps/byte-rows.ts'
import type { Holds } from '../maps/write-order.ts'
import type { BindMap } from '../maps/encode-rows.ts'
import type { Table } from '../maps/map-table.ts'
import type { AddrJoin } from './addr-merger.ts'
import { bridged } from './restart-transition.ts'
import { Epoch, type StateMap } from './epoch.ts'
import { HostRules } from './host-endpoint-rules.ts'
import { policyInKernel } from './read-kernel.ts'
import { AddrPlace, HostPlace, PlainPlace } from './table-writers.ts'
import { PolicyQueue } from './step-queue.ts'
import { PLAIN_TABLES, policyWriter } from './encode-rows.ts'

/** Maps that policy alone fills, np_<name> each. */
export const POLICY_TABLES = [...PLAIN_TABLES, 'hosts', 'untracked'] as const
export type PolicyTableName = (typeof POLICY_TABLES)[number]

export interface PolicyPlaneOptions {
  readonly bind: BindMap
  readonly tables: Readonly<Record<PolicyTableName | 'addrs', Table>>
  readonly join: AddrJoin
  readonly state: StateMap
  readonly btf: Btf
  readonly now: () => number
}

export interface PolicyPlane {
  readonly queue: PolicyQueue
  readonly join: AddrJoin
  readonly epoch: Epoch
  readonly hosts: HostPlace
}

export function policyPlane({ bind, tables, join, state, btf, now }: PolicyPlaneOptions): PolicyPlane {
  const write = policyWriter(bind)
  const epoch = new Epoch({ map: state, btf, now })
  const hosts = new HostPlace({
    rules: new HostRules(),
    hosts: { table: tables.hosts, write: entryWriter(bind(catalogue.np_hosts)) },
    untracked: { table: tables.untracked, write: entryWriter(bind(catalogue.np_untracked)) },
  })
  const { key } = bind(catalogue.np_nets)
  const plain = recordOf(PLAIN_TABLES, (name) => {
    const table = tables[name]
    if (name !== 'nets') return new PlainPlace({ table, write })
    // else an address would fall back to a prefix that is about to go as well
    return new PlainPlace({ table, write, sweepOrder: (a, b) => decodeText(key, a).prefix - decodeText(key, b).prefix })
  })
  const { nets, ...sets } = plain
  const ends = new AddrPlace({ table: tables.addrs, join, write })
  const bridge = (steps: readonly PolicyStep[]): readonly PolicyStep[] => bridged(steps, policyInKernel(tables, bind))
  return { epoch, hosts, join, queue: new PolicyQueue({ epoch, places: { ends, hosts, nets, ...sets }, bridge }) }
}

/** Tables whose rows are to be in the order of steps wait for those; and what was found in the kernel stays until it is known what is wanted. */
export function policyHolds({ queue, join }: Pick<PolicyPlane, 'queue' | 'join'>, others: Holds): Holds {
  const ordered: ReadonlySet<string> = new Set(PLAIN_TABLES)
  const kept: ReadonlySet<string> = new Set(['addrs', 'hosts', 'untracked'])
  return {
    writes: (table) => {
      if (ordered.has(table) && queue.pending()) return () => true
      // only half of such a row is known to us, and the kernel may have the whole
      if (table === 'addrs' && !queue.isWhole) return ([key]) => join.isAnnounced(key)
      return others.writes(table)
    },
    removals: (table) => {
      const waits = ordered.has(table) ? queue.pending() || !queue.isWhole : kept.has(table) && !queue.isWhole
      return waits ? () => true : others.removals(table)
    },
  }
}

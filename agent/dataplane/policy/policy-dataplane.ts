// SPDX-License-Identifier: Apache-2.0
/** Everything that brings policy to one generation of maps. Layer: agent/dataplane. */
import { recordOf } from '#lib/base/object.ts'
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import { restartSteps } from '#agent/compile/policy/transition/restart.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { decodeText, entryWriter } from '#agent/maps/byte-rows.ts'
import type { WriteGate } from '../maps/write-order.ts'
import type { BindMap } from '../maps/encode-rows.ts'
import type { MapTable } from '../maps/map-table.ts'
import type { AddrMerger } from './addr-merger.ts'
import { Epoch, type StateMap } from './epoch.ts'
import { HostEndpointRules } from './host-endpoint-rules.ts'
import { readKernelPolicy } from './read-kernel.ts'
import { AddrTableWriter, HostTableWriter, PlainTableWriter } from './table-writers.ts'
import { StepQueue } from './step-queue.ts'
import { PLAIN_TABLES, policyWriter } from './encode-rows.ts'

/** Maps that policy alone fills, np_<name> each. */
export const POLICY_TABLES = [...PLAIN_TABLES, 'hosts', 'untracked'] as const
export type PolicyTableName = (typeof POLICY_TABLES)[number]

export interface PolicyDataplaneOptions {
  readonly bind: BindMap
  readonly tables: Readonly<Record<PolicyTableName | 'addrs', MapTable>>
  readonly join: AddrMerger
  readonly state: StateMap
  readonly btf: Btf
  readonly now: () => number
}

export interface PolicyDataplane {
  readonly queue: StepQueue
  readonly join: AddrMerger
  readonly epoch: Epoch
  readonly hosts: HostTableWriter
}

export function policyDataplane({ bind, tables, join, state, btf, now }: PolicyDataplaneOptions): PolicyDataplane {
  const write = policyWriter(bind)
  const epoch = new Epoch({ map: state, btf, now })
  const hosts = new HostTableWriter({
    rules: new HostEndpointRules(),
    hosts: { table: tables.hosts, write: entryWriter(bind(catalogue.np_hosts)) },
    untracked: { table: tables.untracked, write: entryWriter(bind(catalogue.np_untracked)) },
  })
  const { key } = bind(catalogue.np_nets)
  const plain = recordOf(PLAIN_TABLES, (name) => {
    const table = tables[name]
    if (name !== 'nets') return new PlainTableWriter({ table, write })
    // else an address would fall back to a prefix that is about to go as well
    return new PlainTableWriter({ table, write, sweepOrder: (a, b) => decodeText(key, a).prefix - decodeText(key, b).prefix })
  })
  const { nets, ...sets } = plain
  const ends = new AddrTableWriter({ table: tables.addrs, join, write })
  const fromKernel = (steps: readonly PolicyStep[]): readonly PolicyStep[] => restartSteps(steps, readKernelPolicy(tables, bind))
  return { epoch, hosts, join, queue: new StepQueue({ epoch, places: { ends, hosts, nets, ...sets }, fromKernel }) }
}

/** Tables whose rows are to be in the order of steps wait for those; and what was found in the kernel stays until it
 * is known what is wanted. */
export function policyHolds({ queue, join }: Pick<PolicyDataplane, 'queue' | 'join'>, others: WriteGate): WriteGate {
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

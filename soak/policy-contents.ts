// SPDX-License-Identifier: Apache-2.0
/** What policy says should be in the tables. Layer: soak. */
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import type { WantedRow } from '#agent/dataplane/maps/key-owners.ts'
import type { Device } from '#agent/dataplane/host/devices.ts'
import { AddrMerger } from '#agent/dataplane/policy/addr-merger.ts'
import { HostEndpointRules } from '#agent/dataplane/policy/host-endpoint-rules.ts'
import type { PolicyTableName } from '#agent/dataplane/policy/policy-dataplane.ts'
import { policyWriter } from '#agent/dataplane/policy/encode-rows.ts'
import type { BindMap } from '#agent/dataplane/maps/encode-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { entryWriter, type Entry } from '#agent/maps/byte-rows.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'

export interface PolicyContentsOptions {
  /** of a whole */
  readonly steps: readonly PolicyStep[]
  readonly devices: readonly Device[]
  readonly bind: BindMap
  readonly put: (name: PolicyTableName, entry: Entry) => void
  /** what else is known of addresses, encoded */
  readonly places: ReadonlyMap<string, string>
}

/** Puts rows of policy's own tables, and returns those of addresses. */
export function policyContents({ steps, devices, bind, put, places }: PolicyContentsOptions): ReadonlyMap<string, string> {
  const tables = new PolicyTables()
  tables.apply(steps)
  const write = policyWriter(bind)
  const addrs = new Map<string, string>()
  const join = new AddrMerger({ rows: wantedIn(addrs), value: bind(catalogue.np_addrs).value, actual: () => undefined })
  const hosts = new HostEndpointRules()
  hosts.setDevices(devices)
  for (const row of tables.rows.values()) {
    if (row.table === 'hosts') hosts.set(row.key.endpoint, row.value)
    else if (row.table === 'ends') join.rule(...write(row))
    else put(row.table, write(row))
  }
  for (const [key, value] of places) join.want(key, value)
  const writeHost = entryWriter(bind(catalogue.np_hosts))
  for (const row of hosts.rows()) put('hosts', writeHost(row))
  const writeUntracked = entryWriter(bind(catalogue.np_untracked))
  for (const row of hosts.untrackedRows()) put('untracked', writeUntracked(row))
  return addrs
}

function wantedIn(rows: Map<string, string>): WantedRow {
  return {
    want: (key, value) => void rows.set(key, value),
    unwant: (key) => void rows.delete(key),
    wanted: (key) => rows.get(key),
  }
}

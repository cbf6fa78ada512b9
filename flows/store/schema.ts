// SPDX-License-Identifier: Apache-2.0
/** The tables of the store. Layer: flows. */
import { BIGINT, BOOLEAN, INTEGER, LIST, UINTEGER, USMALLINT, VARCHAR, type DuckDBType } from '@duckdb/node-api'
import type { Table } from './database.ts'

/** Raised when tables change: a file of another is not opened. */
export const SCHEMA = 1

type Columns = Readonly<Record<string, DuckDBType>>

/** In the order of FlowCounts. */
export const COUNTS = ['packets_in', 'packets_out', 'bytes_in', 'bytes_out', 'started', 'completed', 'live'] as const

/** One node's window of one key; `source` and `dest` are ids of details. */
const WINDOW: Columns = {
  start: UINTEGER,
  node: UINTEGER,
  key: UINTEGER,
  /** 0 of a client that is none of our nodes */
  sequence: BIGINT,
  source: UINTEGER,
  dest: UINTEGER,
  ...Object.fromEntries(COUNTS.map((count) => [count, BIGINT])),
  ports: LIST(USMALLINT),
}

const KEY: Columns = {
  id: UINTEGER,
  hash: VARCHAR,
  source_type: VARCHAR,
  source_name: VARCHAR,
  source_namespace: VARCHAR,
  dest_type: VARCHAR,
  dest_name: VARCHAR,
  dest_namespace: VARCHAR,
  dest_port: UINTEGER,
  /** this and the next three: NULL where no service was meant */
  service_namespace: VARCHAR,
  service_name: VARCHAR,
  service_port_name: VARCHAR,
  service_port: UINTEGER,
  protocol: VARCHAR,
  reporter: VARCHAR,
  action: VARCHAR,
  reason: VARCHAR,
}

const HIT: Columns = {
  key: UINTEGER,
  pending: BOOLEAN,
  position: UINTEGER,
  kind: VARCHAR,
  tier: VARCHAR,
  namespace: VARCHAR,
  name: VARCHAR,
  action: VARCHAR,
  rule: INTEGER,
  /** this and the next three: NULL without a trigger */
  trigger_kind: VARCHAR,
  trigger_tier: VARCHAR,
  trigger_namespace: VARCHAR,
  trigger_name: VARCHAR,
}

const DETAILS: Columns = {
  id: UINTEGER,
  labels: LIST(VARCHAR),
  addresses: LIST(VARCHAR),
  pods: LIST(VARCHAR),
  node: VARCHAR,
  owner: VARCHAR,
}

/** Names of a window's columns, for statements. */
export const WINDOW_COLUMNS = Object.keys(WINDOW).join(', ')

export const TABLES = {
  windows: tableOf('store.windows', WINDOW),
  /** of windows that may still change: in memory */
  live: tableOf('live', { ...WINDOW, slot: BIGINT }),
  /** of windows that were closed before, on their way to those: in memory */
  late: tableOf('late', WINDOW),
  /** slots of rows that others have replaced: in memory */
  gone: tableOf('gone', { slot: BIGINT }),
  keys: tableOf('store.keys', KEY),
  hits: tableOf('store.hits', HIT),
  details: tableOf('store.details', DETAILS),
  nodes: tableOf('store.nodes', { id: UINTEGER, name: VARCHAR }),
  schema: tableOf('store.schema', { version: INTEGER }),
} as const

interface Created extends Table {
  readonly create: string
}

function tableOf(name: string, columns: Columns): Created {
  const list = Object.entries(columns).map(([column, type]) => `${column} ${type.toString()}`)
  return { name, types: Object.values(columns), create: `CREATE TABLE IF NOT EXISTS ${name} (${list.join(', ')})` }
}

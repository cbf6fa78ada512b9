// SPDX-License-Identifier: Apache-2.0
/** Rows of sums as flows again: with their keys, and what is known of their ends. Layer: flows. */
import { listValue } from '@duckdb/node-api'
import { by, compareNumbers, compareText, sorted } from '#lib/base/order.ts'
import {
  END_TYPES,
  FLOW_ACTIONS,
  HIT_KINDS,
  REPORTERS,
  type EndDetails,
  type FlowCounts,
  type FlowKey,
  type FlowWindow,
  type PolicyHit,
  type PolicyRef,
} from '#lib/flows/flow.ts'
import { numberOf, numbersOf, textOf, textsOf, type Cell, type Cells, type Sql } from '../store/database.ts'

export type Ask = (asked: Sql) => Promise<readonly Cells[]>

/** A key's windows together. */
export interface FlowRecord {
  /** the same for the same key as long as anything is kept of it */
  readonly id: number
  /** its start is that of the first */
  readonly window: FlowWindow
  /** start of the last */
  readonly last: number
}

/** Of each end so many addresses and pods are told. */
const MOST = 10

/** The columns of SUMS in their order, from this place on. */
export function sumsOf(row: Cells, at: number): Omit<FlowCounts, 'live'> {
  const [packetsIn = 0, packetsOut = 0, bytesIn = 0, bytesOut = 0, started = 0, completed = 0] = row.slice(at, at + 6).map(numberOf)
  return { packetsIn, packetsOut, bytesIn, bytesOut, started, completed }
}

export async function keysOf(ask: Ask, ids: readonly number[]): Promise<ReadonlyMap<number, FlowKey>> {
  if (ids.length === 0) return new Map()
  const of = [listValue([...new Set(ids)])]
  const hits = new Map<number, { readonly enforced: PolicyHit[]; readonly pending: PolicyHit[] }>()
  const hitRows = await ask({
    text: 'SELECT * FROM store.hits WHERE key IN (SELECT unnest(?)) ORDER BY key, pending, position',
    values: of,
  })
  for (const row of hitRows) {
    const id = numberOf(row[0])
    let lists = hits.get(id)
    if (lists === undefined) hits.set(id, (lists = { enforced: [], pending: [] }))
    lists[row[1] === true ? 'pending' : 'enforced'].push(hitOf(row))
  }
  const rows = await ask({ text: 'SELECT * FROM store.keys WHERE id IN (SELECT unnest(?))', values: of })
  return new Map(rows.map((row) => [numberOf(row[0]), keyOf(row, hits.get(numberOf(row[0])))]))
}

function keyOf(row: Cells, hits: { readonly enforced: PolicyHit[]; readonly pending: PolicyHit[] } | undefined): FlowKey {
  const [, , sourceType, sourceName, sourceNamespace, destType, destName, destNamespace, destPort, ...rest] = row
  const [serviceNamespace, serviceName, portName, port, protocol, reporter, action, reason] = rest
  const hasService = typeof serviceName === 'string'
  return {
    source: { type: oneOf(END_TYPES, sourceType), name: textOf(sourceName), namespace: textOf(sourceNamespace) },
    dest: { type: oneOf(END_TYPES, destType), name: textOf(destName), namespace: textOf(destNamespace) },
    destPort: numberOf(destPort),
    service: hasService
      ? { namespace: textOf(serviceNamespace), name: serviceName, portName: textOf(portName), port: numberOf(port) }
      : undefined,
    protocol: textOf(protocol),
    reporter: oneOf(REPORTERS, reporter),
    action: oneOf(['Allow', 'Deny'], action),
    reason: textOf(reason),
    enforced: hits?.enforced ?? [],
    pending: hits?.pending ?? [],
  }
}

function hitOf(row: Cells): PolicyHit {
  const [, , , kind, tier, namespace, name, action, rule, ...asked] = row
  const hit = { ...refOf([kind, tier, namespace, name]), action: oneOf(FLOW_ACTIONS, action), rule: numberOf(rule) }
  return typeof asked[0] === 'string' ? { ...hit, trigger: refOf(asked) } : hit
}

function refOf([kind, tier, namespace, name]: readonly (Cell | undefined)[]): PolicyRef {
  return { kind: oneOf(HIT_KINDS, kind), tier: textOf(tier), namespace: textOf(namespace), name: textOf(name) }
}

/** What the tables have is what was written to them. */
export function oneOf<T extends string>(names: readonly [T, ...T[]], cell: Cell | undefined): T {
  return names.find((name) => name === cell) ?? names[0]
}

/** Of a page. */
export interface FoundKey {
  readonly id: number
  /** start of its last window */
  readonly last: number
}

/** What is told of these keys besides sums, over all of the rows. One group of rows is what a node has told of a key
 * with the same details: that is a few a key, and the rows are read once. */
export async function endsOf(ask: Ask, rows: Sql, found: readonly FoundKey[]): Promise<ReadonlyMap<number, Ends>> {
  if (found.length === 0) return new Map()
  const ids = listValue(found.map(({ id }) => id))
  const isOf = 'key IN (SELECT unnest(?))'
  const groups = await ask({
    text: `SELECT key, node, source, dest, min(start), arg_min(live - started, start), sum(started)
      FROM ${rows.text} WHERE ${isOf} GROUP BY key, node, source, dest`,
    values: [...rows.values, ids],
  })
  const newest = found.reduce((least, { last }) => Math.min(least, last), Infinity)
  const ports = await ask({
    text: `SELECT key, arg_max(ports, start) FROM ${rows.text} WHERE ${isOf} AND start >= ? GROUP BY key`,
    values: [...rows.values, ids, newest],
  })
  const portsOf = new Map(ports.map(([key, list]) => [numberOf(key), numbersOf(list)]))
  const details = await detailsOf(ask, new Set(groups.flatMap(([, , source, dest]) => [numberOf(source), numberOf(dest)])))
  const byKey = Map.groupBy(groups, ([key]) => numberOf(key))
  const merged = (cells: readonly (Cell | undefined)[]): EndDetails =>
    mergeDetails([...new Set(cells.map(numberOf))].flatMap((id) => details.get(id) ?? []))
  return new Map(
    [...byKey].map(([key, of]) => [
      key,
      {
        source: merged(of.map(([, , source]) => source)),
        dest: merged(of.map(([, , , dest]) => dest)),
        ports: portsOf.get(key) ?? [],
        live: liveIn(of),
      },
    ]),
  )
}

/** As `liveOf`, of groups of one key. */
function liveIn(groups: readonly Cells[]): number {
  let live = 0
  for (const of of Map.groupBy(groups, ([, node]) => numberOf(node)).values()) {
    const [first] = sorted(
      of,
      by((group) => numberOf(group[4]), compareNumbers),
    )
    live += Math.max(0, numberOf(first?.[5])) + of.reduce((sum, group) => sum + numberOf(group[6]), 0)
  }
  return live
}

export interface Ends {
  readonly source: EndDetails
  readonly dest: EndDetails
  /** in the newest window */
  readonly ports: readonly number[]
  readonly live: number
}

async function detailsOf(ask: Ask, ids: ReadonlySet<number>): Promise<ReadonlyMap<number, EndDetails>> {
  if (ids.size === 0) return new Map()
  const rows = await ask({ text: 'SELECT * FROM store.details WHERE id IN (SELECT unnest(?))', values: [listValue([...ids])] })
  return new Map(
    rows.map(([id, labels, addresses, pods, node, owner]) => [
      numberOf(id),
      { labels: textsOf(labels), addresses: textsOf(addresses), pods: textsOf(pods), node: textOf(node), owner: textOf(owner) },
    ]),
  )
}

const NO_DETAILS: EndDetails = { labels: [], addresses: [], pods: [], node: '', owner: '' }
export const NO_ENDS: Ends = { source: NO_DETAILS, dest: NO_DETAILS, ports: [], live: 0 }

/** The labels that all have; addresses and pods of any; a node or owner that is the same of all. */
export function mergeDetails(all: readonly EndDetails[]): EndDetails {
  const [first = NO_DETAILS, ...more] = all
  if (more.length === 0) return first
  const rest = more.map(({ labels }) => new Set(labels))
  const any = (of: (one: EndDetails) => readonly string[]): readonly string[] =>
    sorted(new Set(all.flatMap(of)), compareText).slice(0, MOST)
  const same = (of: (one: EndDetails) => string): string => (more.every((one) => of(one) === of(first)) ? of(first) : '')
  return {
    labels: first.labels.filter((label) => rest.every((labels) => labels.has(label))),
    addresses: any(({ addresses }) => addresses),
    pods: any(({ pods }) => pods),
    node: same(({ node }) => node),
    owner: same(({ owner }) => owner),
  }
}

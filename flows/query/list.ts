// SPDX-License-Identifier: Apache-2.0
/** Flows of a time: one record a key, a page of them. Layer: flows. */
import type { Filter } from '../filter/filter.ts'
import { numberOf, type Cells } from '../store/database.ts'
import { rowsOf, SUMS, type Range } from './range.ts'
import { endsOf, keysOf, NO_ENDS, sumsOf, type Ask, type FlowRecord } from './records.ts'

/** Of a key's columns, ascending; time is that of its first window, the newest first. */
export const SORTS = ['time', 'dest_name', 'dest_namespace', 'dest_type', 'source_name', 'source_namespace', 'source_type'] as const
export type Sort = (typeof SORTS)[number]

export interface Page {
  readonly index: number
  /** 0: all */
  readonly size: number
}

export interface Asked {
  readonly range: Range
  readonly filter: Filter
  readonly page: Page
}

export interface Paged<T> {
  readonly items: readonly T[]
  readonly totalResults: number
  readonly totalPages: number
}

export async function listFlows(ask: Ask, { range, filter, page, sort }: Asked & { readonly sort: Sort }): Promise<Paged<FlowRecord>> {
  const rows = rowsOf(range, filter)
  const order = sort === 'time' ? 'first DESC, key' : `k.${sort}, key`
  const found = await ask({
    text: `SELECT key, first, last, ${SUMS.join(', ')}
      FROM (SELECT key, min(start) AS first, max(start) AS last, ${SUMS.map((count) => `sum(${count}) AS ${count}`).join(', ')}
        FROM ${rows.text} GROUP BY key)
      ${sort === 'time' ? '' : 'JOIN store.keys k ON k.id = key'} ORDER BY ${order} ${limitOf(page)}`,
    values: rows.values,
  })
  const total = await totalOf(page, found.length, () => ask({ text: `SELECT count(DISTINCT key) FROM ${rows.text}`, values: rows.values }))
  const ids = found.map(([id, , last]) => ({ id: numberOf(id), last: numberOf(last) }))
  const keys = await keysOf(
    ask,
    ids.map(({ id }) => id),
  )
  const ends = await endsOf(ask, rows, ids)
  const items = found.flatMap((row): FlowRecord[] => {
    const [id, start, last] = row.slice(0, 3).map(numberOf)
    const key = keys.get(id ?? 0)
    if (key === undefined || id === undefined || start === undefined || last === undefined) return []
    const { source, dest, ports, live } = ends.get(id) ?? NO_ENDS
    return [{ id, window: { key, start, counts: { ...sumsOf(row, 3), live }, source, dest, sourcePorts: ports }, last }]
  })
  return paged(items, total, page)
}

export function limitOf({ index, size }: Page): string {
  return size === 0 ? (index === 0 ? '' : 'LIMIT 0') : `LIMIT ${size} OFFSET ${index * size}`
}

/** All that there are, also when the page is behind the last. */
export async function totalOf({ index, size }: Page, found: number, count: () => Promise<readonly Cells[]>): Promise<number> {
  if (index === 0 && (size === 0 || found < size)) return found
  const [row] = await count()
  return numberOf(row?.[0])
}

export function paged<T>(items: readonly T[], totalResults: number, { size }: Page): Paged<T> {
  return { items, totalResults, totalPages: size === 0 ? 1 : Math.ceil(totalResults / size) }
}

// SPDX-License-Identifier: Apache-2.0
/** Which values a filter may have: those of the flows that match. Layer: flows. */
import { filterSql } from '../filter/sql.ts'
import { textOf } from '../store/database.ts'
import { limitOf, paged, totalOf, type Asked, type Paged } from './list.ts'
import { EVER } from './range.ts'
import type { Ask } from './records.ts'

export const HINTS = [
  'DestName',
  'SourceName',
  'DestNamespace',
  'SourceNamespace',
  'PolicyTier',
  'PolicyName',
  'PolicyKind',
  'PolicyNamespace',
] as const
export type Hint = (typeof HINTS)[number]

const COLUMNS: Readonly<Record<Hint, string>> = {
  DestName: 'dest_name',
  SourceName: 'source_name',
  DestNamespace: 'dest_namespace',
  SourceNamespace: 'source_namespace',
  PolicyTier: 'tier',
  PolicyName: 'name',
  PolicyKind: 'kind',
  PolicyNamespace: 'namespace',
}

/** Of the end of a tier the policy counts for which the tier is asked; profiles have no tier, and are left out. */
export async function listHints(ask: Ask, { range, filter, page, hint }: Asked & { readonly hint: Hint }): Promise<Paged<string>> {
  const column = COLUMNS[hint]
  const condition = filterSql(filter)
  const times = range === EVER ? [] : [range.first, range.last]
  const isIn = (table: string): string => `SELECT key FROM ${table} WHERE start BETWEEN ? AND ?`
  const inTime = range === EVER ? '' : ` AND id IN (${isIn('store.windows')} UNION ${isIn('live')})`
  const keys = `FROM store.keys WHERE ${condition.text}${inTime}`
  const values = [...condition.values, ...times, ...times]
  const text = hint.startsWith('Policy')
    ? `SELECT DISTINCT CASE kind WHEN 'EndOfTier' THEN trigger_${column} ELSE ${column} END AS value FROM store.hits
        WHERE kind <> 'Profile' AND value IS NOT NULL AND key IN (SELECT id ${keys})`
    : `SELECT DISTINCT ${column} AS value ${keys}`
  const rows = await ask({ text: `${text} ORDER BY value ${limitOf(page)}`, values })
  const total = await totalOf(page, rows.length, () => ask({ text: `SELECT count(*) FROM (${text})`, values }))
  return paged(
    rows.map(([value]) => textOf(value)),
    total,
    page,
  )
}

// SPDX-License-Identifier: Apache-2.0
/** The windows that are asked for, and their rows. Layer: flows. */
import { WINDOW_SECONDS } from '#lib/flows/flow.ts'
import { filterSql } from '../filter/sql.ts'
import type { Filter } from '../filter/filter.ts'
import { FilterError } from '../filter/filter-error.ts'
import type { Sql } from '../store/database.ts'
import { WINDOW_COLUMNS } from '../store/schema.ts'

/** Windows that begin from the first to the last of these seconds. */
export interface Range {
  readonly first: number
  readonly last: number
}

const END_OF_TIME = 2 ** 32 - 1

export const EVER: Range = { first: 0, last: END_OF_TIME }

/** Seconds as clients of Goldmane say them: negative ones are before now. */
export interface Times {
  /** 0: the oldest */
  readonly from: number
  /** 0: what there is, the window that is filling as well; otherwise windows that have ended by then */
  readonly to: number
}

/** Throws FilterError for `field`, which is what the client calls `to`. */
export function rangeOf({ from, to }: Times, now: number, field: string): Range {
  const at = (time: number): number => (time < 0 ? now + time : time)
  const first = at(from)
  const last = to === 0 ? END_OF_TIME : at(to) - WINDOW_SECONDS
  if (to !== 0 && first >= at(to)) throw new FilterError(field, `${to} is not after ${from}`)
  return { first: Math.max(0, Math.min(first, END_OF_TIME)), last: Math.max(-1, Math.min(last, END_OF_TIME)) }
}

/** The second that `from` means; 0 where it means none. */
export function startOf(from: number, now: number): number {
  return Math.max(0, from < 0 ? now + from : from)
}

/** The rows of windows, closed and open, as a table of its own. */
export function rowsOf({ first, last }: Range, filter: Filter): Sql {
  const { text, values } = filterSql(filter)
  const isIn = `start BETWEEN ? AND ?${text === 'true' ? '' : ` AND key IN (SELECT id FROM store.keys WHERE ${text})`}`
  const part = (table: string): string => `SELECT ${WINDOW_COLUMNS} FROM ${table} WHERE ${isIn}`
  return {
    text: `(${part('store.windows')} UNION ALL ${part('live')})`,
    values: [first, last, ...values, first, last, ...values],
  }
}

/** Counts that add up over windows and nodes: all but connections that are there. */
export const SUMS = ['packets_in', 'packets_out', 'bytes_in', 'bytes_out', 'started', 'completed'] as const

/** Connections that were there at some moment, by a key and what `more` names of a row. Those that are there in
 * several windows of a node are counted once: those of its first window, and those that have begun since. */
export function liveOf(rows: Sql, more = ''): Sql {
  const by = more === '' ? '' : `, ${more}`
  const of = `SELECT key${by}, sum(started) + greatest(arg_min(live - started, start), 0) AS live FROM ${rows.text} GROUP BY key, node${by}`
  return { text: `(SELECT key${by}, sum(live) AS live FROM (${of}) GROUP BY key${by})`, values: rows.values }
}

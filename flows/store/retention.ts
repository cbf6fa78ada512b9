// SPDX-License-Identifier: Apache-2.0
/** What is kept no longer: by age, and by the size of the file. Layer: flows. */
import { listValue } from '@duckdb/node-api'
import { WINDOW_SECONDS } from '#lib/flows/flow.ts'
import { numberOf, type Writer } from './database.ts'

export interface Limits {
  /** windows that begin earlier go */
  readonly before: number
  readonly mostBytes: number
  /** the ids that nothing refers to; returns those that may go */
  readonly forgetKeys: (unused: readonly number[]) => readonly number[]
  readonly forgetDetails: (unused: readonly number[]) => readonly number[]
}

/** What there is after. */
export interface Kept {
  /** start of the oldest window; undefined: there is none */
  readonly oldest: number | undefined
  readonly rows: number
  readonly bytes: number
  /** rows that went because the file was too large */
  readonly forgottenBySize: number
}

/** Of the time that is kept, which goes at once when the file is too large. */
const PART = 20

export async function forgetOld(writer: Writer, limits: Limits): Promise<Kept> {
  const before = await stateOf(writer)
  await writer.run('DELETE FROM store.windows WHERE start < ?', [limits.before])
  let now = await stateOf(writer)
  let forgottenBySize = 0
  for (let round = 0; round < PART && now.bytes > limits.mostBytes && now.oldest !== undefined; round++) {
    const span = Math.max(WINDOW_SECONDS, (now.newest - now.oldest) / PART)
    await writer.run('DELETE FROM store.windows WHERE start < ?', [Math.ceil(now.oldest + span)])
    await writer.run('CHECKPOINT store')
    const after = await stateOf(writer)
    forgottenBySize += now.rows - after.rows
    now = after
  }
  if (now.rows < before.rows) {
    await forgetUnused(writer, limits)
    await writer.run('CHECKPOINT store')
    now = await stateOf(writer)
  }
  return { oldest: now.oldest, rows: now.rows, bytes: now.bytes, forgottenBySize }
}

async function forgetUnused(writer: Writer, { forgetKeys, forgetDetails }: Limits): Promise<void> {
  const keys = forgetKeys(await unusedOf(writer, 'keys', ['key']))
  const details = forgetDetails(await unusedOf(writer, 'details', ['source', 'dest']))
  await writer.transaction(async () => {
    if (keys.length > 0) {
      await writer.run('DELETE FROM store.keys WHERE id IN (SELECT unnest(?))', [listValue([...keys])])
      await writer.run('DELETE FROM store.hits WHERE key IN (SELECT unnest(?))', [listValue([...keys])])
    }
    if (details.length > 0) await writer.run('DELETE FROM store.details WHERE id IN (SELECT unnest(?))', [listValue([...details])])
  })
}

/** Ids of a table to which no row of windows refers by one of the columns. */
async function unusedOf(writer: Writer, table: string, columns: readonly string[]): Promise<readonly number[]> {
  const used = ['store.windows', 'live'].flatMap((rows) => columns.map((column) => `SELECT ${column} FROM ${rows}`))
  const rows = await writer.read({ text: `SELECT id FROM store.${table} WHERE id NOT IN (${used.join(' UNION ')})`, values: [] })
  return rows.map(([id]) => numberOf(id))
}

async function stateOf(writer: Writer) {
  const text = `SELECT count(*), min(start), max(start),
    (SELECT block_size * used_blocks FROM pragma_database_size() WHERE database_name = 'store') FROM store.windows`
  const [[rows, oldest, newest, bytes] = []] = await writer.read({ text, values: [] })
  const isEmpty = numberOf(rows) === 0
  return { rows: numberOf(rows), oldest: isEmpty ? undefined : numberOf(oldest), newest: numberOf(newest), bytes: numberOf(bytes) }
}

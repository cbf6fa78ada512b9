// SPDX-License-Identifier: Apache-2.0
/** What is kept of flows: takes updates, writes them once a second, closes windows, forgets what is old.
 * Layer: flows. */
import { listValue } from '@duckdb/node-api'
import type { Clock } from '#lib/base/clock.ts'
import { NONE, WINDOW_SECONDS, type EndDetails, type FlowCounts, type FlowKey, type FlowWindow } from '#lib/flows/flow.ts'
import type { ReceivedUpdate } from '#lib/flows/wire/codec.ts'
import { Database, numberOf, numbersOf, textOf, type Cells, type DatabaseOptions, type Sql, type Value, type Writer } from './database.ts'
import { Dictionary } from './dictionary.ts'
import { OpenWindows, type Batch, type Row, type Taken } from './open-windows.ts'
import { forgetOld, type Kept } from './retention.ts'
import { COUNTS, SCHEMA, TABLES, WINDOW_COLUMNS } from './schema.ts'
import { detailsCells, detailsHash, hashOf, hitCells, keyCells, keyHash } from './texts.ts'

export interface StoreOptions extends DatabaseOptions {
  readonly clock: Pick<Clock, 'wall'>
  readonly retentionSeconds: number
  readonly retentionBytes: number
  /** how long after its end a window may change without being late */
  readonly openSeconds: number
}

/** What an update has changed. */
export interface Change {
  /** of the key: the same until nothing is kept of it */
  readonly id: number
  readonly window: FlowWindow
  /** what was told of it before; undefined: the first */
  readonly before: FlowCounts | undefined
}

/** - untimely: older than what is kept, or of the future */
export type TakenUpdate = Taken['kind'] | 'untimely'

/** Clocks of nodes may be so much ahead. */
const SKEW_SECONDS = 30
/** Details that are remembered by their content: others are written again. */
const MOST_DETAILS = 200_000
const MOST_PORT = 65535

export class FlowStore implements AsyncDisposable {
  readonly #options: StoreOptions
  readonly #database: Database
  readonly #keys: Dictionary<FlowKey>
  readonly #details: Dictionary<EndDetails>
  readonly #nodes: Dictionary<undefined>
  readonly #open: OpenWindows
  readonly #listeners = new Set<(change: Change) => void>()

  private constructor(options: StoreOptions, database: Database, found: Found) {
    this.#options = options
    this.#database = database
    this.#keys = new Dictionary(found.keys)
    this.#details = new Dictionary({ next: found.nextDetails, most: MOST_DETAILS })
    this.#nodes = new Dictionary(found.nodes)
    this.#open = new OpenWindows(found.closed)
    for (const row of found.open) this.#open.take(row)
  }

  /** Throws when the file is another's, or of another version. */
  static async open(options: StoreOptions): Promise<FlowStore> {
    await using stack = new AsyncDisposableStack()
    const database = stack.use(await Database.open(options))
    const found = await database.write(async (writer) => {
      await writer.run(TABLES.schema.create)
      const [version] = await writer.read(sql('SELECT version FROM store.schema'))
      if (version === undefined) await writer.append(TABLES.schema, [[SCHEMA]])
      else if (numberOf(version[0]) !== SCHEMA) throw new Error(`${options.file} has tables of version ${numberOf(version[0])}`)
      for (const { create } of Object.values(TABLES)) await writer.run(create)
      const closed = Math.floor(options.clock.wall() / 1000) - options.openSeconds - WINDOW_SECONDS
      return await findWhatIsThere(writer, closed)
    })
    const store = new FlowStore(options, database, found)
    await store.flush()
    stack.move()
    return store
  }

  get keyCount(): number {
    return this.#keys.size
  }

  get openRows(): number {
    return this.#open.size
  }

  /** start of the newest window that changes only by what is late */
  get closed(): number {
    return this.#open.closed
  }

  /** `peer`: who has sent it, for clients that are none of our nodes. */
  take({ window, origin }: ReceivedUpdate, peer: string): TakenUpdate {
    const now = this.#now()
    const start = window.start - (window.start % WINDOW_SECONDS)
    if (start < now - this.#options.retentionSeconds || start > now + SKEW_SECONDS) return 'untimely'
    const key = this.#keys.idOf(keyHash(window.key), window.key)
    const row: Row = {
      start,
      node: this.#nodes.idOf(origin?.node ?? `${PEER}${peer}`, undefined),
      key,
      sequence: origin?.sequence,
      source: this.#details.idOf(detailsHash(window.source), window.source),
      dest: this.#details.idOf(detailsHash(window.dest), window.dest),
      counts: window.counts,
      ports: window.sourcePorts.filter((port) => port <= MOST_PORT),
    }
    const taken = this.#open.take(row, origin === undefined ? hashOf([row.node, key, window.start, window.counts]) : '')
    if (taken.kind === 'new') this.#tell({ id: key, window: { ...window, start }, before: undefined })
    if (taken.kind === 'replaced') this.#tell({ id: key, window: { ...window, start, counts: taken.counts }, before: taken.before })
    return taken.kind
  }

  /** Of what is taken from now on; returns how to end it. */
  listen(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Writes what was taken, and closes windows that are old enough. */
  async flush(): Promise<void> {
    await this.#database.write((writer) => this.#write(writer, this.#lastToClose()))
  }

  /** What there is, and from then on what changes: none of it in both, and nothing in neither. `read` is called when
   * all that was taken before `onCut` is in tables. */
  async cut<C, T>(onCut: () => C, read: (ask: (asked: Sql) => Promise<readonly Cells[]>, cut: C) => Promise<T>): Promise<T> {
    return await this.#database.write(async (writer) => {
      const cut = onCut()
      await this.#write(writer, undefined)
      return await read((asked) => writer.read(asked), cut)
    })
  }

  read(asked: Sql): Promise<readonly Cells[]> {
    return this.#database.read(asked)
  }

  /** Forgets what is older or more than is kept. */
  async retain(): Promise<Kept> {
    const { retentionSeconds, retentionBytes } = this.#options
    return await this.#database.write((writer) =>
      forgetOld(writer, {
        before: this.#now() - retentionSeconds,
        mostBytes: retentionBytes,
        forgetKeys: (unused) =>
          forget(
            this.#keys,
            unused,
            this.#pendingIds((row) => [row.key]),
          ),
        forgetDetails: (unused) =>
          forget(
            this.#details,
            unused,
            this.#pendingIds((row) => [row.source, row.dest]),
          ),
      }),
    )
  }

  /** What nodes have told of windows that are open is kept for the next process. Other clients tell theirs again,
   * and it could not know it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database.write(async (writer) => {
      await this.#write(writer, this.#lastToClose())
      await writer.run('DELETE FROM live WHERE sequence = 0')
      await closeUntil(writer, Infinity)
    })
    await this.#database[Symbol.asyncDispose]()
  }

  #now(): number {
    return Math.floor(this.#options.clock.wall() / 1000)
  }

  #lastToClose(): number | undefined {
    const last = this.#now() - this.#options.openSeconds - WINDOW_SECONDS
    return this.#open.hasUntil(last) ? last : undefined
  }

  /** Nothing is taken between the first two steps: the batch is all of the windows that are closed. */
  async #write(writer: Writer, closing: number | undefined): Promise<void> {
    if (closing !== undefined) this.#open.close(closing)
    const batch = this.#open.takeBatch()
    const [keys, details, nodes] = [this.#keys.takeFresh(), this.#details.takeFresh(), this.#nodes.takeFresh()]
    if (keys.length + details.length + nodes.length > 0)
      await writer.transaction(async () => {
        await writer.append(
          TABLES.nodes,
          nodes.map(([id, name]) => [id, name]),
        )
        await writer.append(
          TABLES.details,
          details.map(([id, , value]) => detailsCells(id, value)),
        )
        await writer.append(
          TABLES.keys,
          keys.map(([id, hash, key]) => keyCells(id, hash, key)),
        )
        await writer.append(
          TABLES.hits,
          keys.flatMap(([id, , key]) => hitCells(id, key)),
        )
      })
    await writeLive(writer, batch)
    if (batch.late.length > 0) await writeLate(writer, batch.late)
    if (closing !== undefined) await closeUntil(writer, closing)
  }

  #tell(change: Change): void {
    for (const listener of this.#listeners) listener(change)
  }

  #pendingIds(idsOf: (row: Row) => readonly number[]): ReadonlySet<number> {
    return new Set([...this.#open.pending()].flatMap(idsOf))
  }
}

/** Names of clients that are none of our nodes; no node has such a name. */
const PEER = `${NONE}peer `

/** Those that nothing refers to are new when they come again. Returns them. */
function forget<T>(dictionary: Dictionary<T>, unused: readonly number[], pending: ReadonlySet<number>): readonly number[] {
  const gone = new Set(unused.filter((id) => !pending.has(id)))
  dictionary.forget(gone)
  return [...gone]
}

interface Found {
  readonly keys: { readonly next: number; readonly known: readonly (readonly [string, number])[] }
  readonly nodes: { readonly next: number; readonly known: readonly (readonly [string, number])[] }
  readonly nextDetails: number
  /** start of the newest window that is closed */
  readonly closed: number
  /** what the process before has left of windows that are open */
  readonly open: readonly Row[]
}

/** Windows that begin after `closed` may still change: their rows leave the file. */
async function findWhatIsThere(writer: Writer, closed: number): Promise<Found> {
  const known = async (text: string) => {
    const rows = await writer.read(sql(text))
    const pairs = rows.map(([name, id]) => [textOf(name), numberOf(id)] as const)
    return { known: pairs, next: 1 + pairs.reduce((most, [, id]) => Math.max(most, id), 0) }
  }
  const open = await writer.read(sql(`SELECT ${WINDOW_COLUMNS} FROM store.windows WHERE start > ?`, [closed]))
  await writer.run('DELETE FROM store.windows WHERE start > ?', [closed])
  const [largest] = await writer.read(sql('SELECT (SELECT max(id) FROM store.details), (SELECT max(start) FROM store.windows)'))
  return {
    open: open.map(rowOf),
    keys: await known('SELECT hash, id FROM store.keys'),
    nodes: await known('SELECT name, id FROM store.nodes'),
    nextDetails: 1 + numberOf(largest?.[0]),
    closed: numberOf(largest?.[1]),
  }
}

async function writeLive(writer: Writer, { rows, gone }: Batch): Promise<void> {
  if (gone.length > 0) {
    await writer.append(
      TABLES.gone,
      gone.map((slot) => [BigInt(slot)]),
    )
    await writer.run('DELETE FROM live WHERE slot IN (SELECT slot FROM gone)')
    await writer.run('TRUNCATE gone')
  }
  await writer.append(
    TABLES.live,
    rows.map((row) => [...cellsOf(row), BigInt(row.slot)]),
  )
}

/** A row of a closed window is new, or more than what is there of it, or known. */
async function writeLate(writer: Writer, late: readonly Row[]): Promise<void> {
  await writer.append(TABLES.late, late.map(cellsOf))
  const oldest = late.reduce((least, { start }) => Math.min(least, start), Infinity)
  const same = 'w.start >= ? AND w.start = l.start AND w.node = l.node AND w.key = l.key'
  await writer.transaction(async () => {
    await writer.run(`DELETE FROM store.windows w USING late l WHERE ${same} AND w.sequence < l.sequence`, [oldest])
    const isNew = `NOT EXISTS (SELECT 1 FROM store.windows w WHERE ${same})`
    await writer.run(`INSERT INTO store.windows SELECT ${WINDOW_COLUMNS} FROM late l WHERE ${isNew}`, [oldest])
  })
  await writer.run('TRUNCATE late')
}

async function closeUntil(writer: Writer, last: number): Promise<void> {
  const until = Math.min(last, MOST_START)
  await writer.run(`INSERT INTO store.windows SELECT ${WINDOW_COLUMNS} FROM live WHERE start <= ? ORDER BY start, key`, [until])
  // deleted rows would keep their memory
  await writer.run(`CREATE OR REPLACE TABLE live AS SELECT * FROM live WHERE start > ${until}`)
}

const MOST_START = 2 ** 32 - 1

function cellsOf({ start, node, key, sequence, source, dest, counts, ports }: Row): readonly Value[] {
  return [
    start,
    node,
    key,
    BigInt(sequence ?? 0),
    source,
    dest,
    BigInt(counts.packetsIn),
    BigInt(counts.packetsOut),
    BigInt(counts.bytesIn),
    BigInt(counts.bytesOut),
    BigInt(counts.started),
    BigInt(counts.completed),
    BigInt(counts.live),
    listValue([...ports]),
  ]
}

/** As `cellsOf` has written it. */
function rowOf(cells: Cells): Row {
  const [start = 0, node = 0, key = 0, sequence = 0, source = 0, dest = 0, ...counts] = cells.map(numberOf)
  const [packetsIn = 0, packetsOut = 0, bytesIn = 0, bytesOut = 0, started = 0, completed = 0, live = 0] = counts
  return {
    start,
    node,
    key,
    sequence,
    source,
    dest,
    counts: { packetsIn, packetsOut, bytesIn, bytesOut, started, completed, live },
    ports: numbersOf(cells[COUNTS_AT + COUNTS.length]),
  }
}

const COUNTS_AT = 6

export function sql(text: string, values: readonly Value[] = []): Sql {
  return { text, values }
}

// SPDX-License-Identifier: Apache-2.0
/** DuckDB as the store uses it: one file, many readers or one writer, rows in by columns and out as plain values.
 * Layer: flows. */
import { DuckDBDataChunk, DuckDBInstance, type DuckDBConnection, type DuckDBType, type DuckDBValue, type JS } from '@duckdb/node-api'
import { Semaphore } from '#lib/base/async/semaphore.ts'

export type Value = DuckDBValue
export type Cell = JS
export type Cells = readonly Cell[]

export interface DatabaseOptions {
  readonly file: string
  readonly memoryMb: number
  readonly threads: number
}

/** A statement and the values of its question marks. */
export interface Sql {
  readonly text: string
  readonly values: readonly Value[]
}

const READERS = 4
/** DuckDB takes at most so many rows in a chunk. */
const CHUNK = 2048

/** The file is attached as `store`; what has no such prefix is in memory. */
export class Database implements AsyncDisposable {
  readonly #instance: DuckDBInstance
  readonly #writer: DuckDBConnection
  readonly #readers: DuckDBConnection[]
  readonly #reading = new Semaphore(READERS)
  readonly #writing = new Semaphore(1)

  private constructor(instance: DuckDBInstance, connections: readonly DuckDBConnection[]) {
    const [writer, ...readers] = connections
    if (writer === undefined) throw new Error('no connection')
    this.#instance = instance
    this.#writer = writer
    this.#readers = readers
  }

  static async open({ file, memoryMb, threads }: DatabaseOptions): Promise<Database> {
    const instance = await DuckDBInstance.create(':memory:', {
      threads: `${threads}`,
      memory_limit: `${memoryMb}MB`,
      // nothing is fetched, and nothing read but the store's own file
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      // where what is larger than the memory goes
      temp_directory: `${file}.tmp`,
      preserve_insertion_order: 'false',
    })
    const connections = await Promise.all(Array.from({ length: READERS + 1 }, () => instance.connect()))
    await connections[0]?.run(`ATTACH '${file.replaceAll("'", "''")}' AS store`)
    return new Database(instance, connections)
  }

  /** What a query of others may ask for: it waits for the writer, and others run beside it. */
  read(sql: Sql): Promise<readonly Cells[]> {
    return this.#reading.run(async () => {
      const connection = this.#readers.pop()
      if (connection === undefined) throw new Error('more readers than connections')
      try {
        return await rowsOf(connection, sql)
      } finally {
        this.#readers.push(connection)
      }
    })
  }

  /** Alone: nothing else is read or written meanwhile. */
  async write<T>(work: (writer: Writer) => Promise<T>): Promise<T> {
    return await this.#writing.run(async () => {
      const { promise: all, resolve: allHeld } = Promise.withResolvers<undefined>()
      const { promise: done, resolve: finish } = Promise.withResolvers<undefined>()
      let held = 0
      const turns = Array.from({ length: READERS }, () =>
        this.#reading.run(() => {
          if (++held === READERS) allHeld(undefined)
          return done
        }),
      )
      await all
      try {
        return await work(new Writer(this.#writer))
      } finally {
        finish(undefined)
        await Promise.all(turns)
      }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.write(async () => {
      await this.#writer.run('CHECKPOINT store')
    })
    for (const connection of [this.#writer, ...this.#readers]) connection.closeSync()
    this.#instance.closeSync()
  }
}

/** A table, and the type of each of its columns. */
export interface Table {
  readonly name: string
  readonly types: readonly DuckDBType[]
}

/** What may be done while nothing else is. */
export class Writer {
  readonly #connection: DuckDBConnection

  constructor(connection: DuckDBConnection) {
    this.#connection = connection
  }

  async run(text: string, values: readonly Value[] = []): Promise<void> {
    await this.#connection.run(text, [...values])
  }

  read(sql: Sql): Promise<readonly Cells[]> {
    return rowsOf(this.#connection, sql)
  }

  /** All of it, or nothing when it throws or the process is killed. */
  async transaction(work: () => Promise<void>): Promise<void> {
    await this.run('BEGIN')
    try {
      await work()
    } catch (thrown) {
      await this.run('ROLLBACK')
      throw thrown
    }
    await this.run('COMMIT')
  }

  /** Each row's values in the order of the table's columns; `table` may be of `store`. */
  async append({ name, types }: Table, rows: readonly (readonly Value[])[]): Promise<void> {
    if (rows.length === 0) return
    const [catalog, table] = name.startsWith('store.') ? ['store', name.slice('store.'.length)] : [undefined, name]
    const appender = await this.#connection.createAppender(table, undefined, catalog)
    try {
      for (let first = 0; first < rows.length; first += CHUNK) {
        const part = rows.slice(first, first + CHUNK)
        const chunk = DuckDBDataChunk.create(types, part.length)
        chunk.setColumns(types.map((_type, column) => part.map((row) => row[column] ?? null)))
        appender.appendDataChunk(chunk)
      }
      appender.flushSync()
    } finally {
      appender.closeSync()
    }
  }
}

async function rowsOf(connection: DuckDBConnection, { text, values }: Sql): Promise<readonly Cells[]> {
  const reader = await connection.runAndReadAll(text, [...values])
  return reader.getRowsJS()
}

/** Of a column that is a number; NULL is 0. */
export function numberOf(cell: Cell | undefined): number {
  return typeof cell === 'number' ? cell : typeof cell === 'bigint' ? Number(cell) : 0
}

/** Of a column that is a text; NULL is empty. */
export function textOf(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell : ''
}

export function numbersOf(cell: Cell | undefined): readonly number[] {
  return Array.isArray(cell) ? cell.map((each: Cell) => numberOf(each)) : []
}

export function textsOf(cell: Cell | undefined): readonly string[] {
  return Array.isArray(cell) ? cell.map((each: Cell) => textOf(each)) : []
}

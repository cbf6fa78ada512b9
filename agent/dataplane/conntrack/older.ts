// SPDX-License-Identifier: Apache-2.0
/** Who opened the TCP connections that are older than our programs, out of the kernel's own table.
 * Layer: agent/dataplane.
 *
 * Of a segment that is no SYN programs do not know which end opened its connection, and ask the rules of both
 * directions. For their first minute they have what the kernel knows of the connections of this node's pods. */
import { setImmediate } from 'node:timers/promises'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { errorCode } from '#lib/base/errors.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { Log } from '#lib/obs/log.ts'
import { decodeConnection, encodeConnectionDump, GET_CONNECTIONS, type Tuple } from '#agent/interfaces/netlink/connection.ts'
import type { NetlinkTransport } from '#agent/interfaces/netlink/exchange.ts'
import { dumpLong } from '#agent/interfaces/netlink/long-dump.ts'
import type { Btf } from '../../maps/btf.ts'
import { encodeBytes, textWriter } from '../../maps/byte-rows.ts'
import { chunksOf, type ChunkedMap } from '../../maps/chunks.ts'
import { bind, bindKey } from '../../maps/codec.ts'
import { flowKey, type Direction } from '../../maps/flow-key.ts'
import { structLayout } from '../../maps/layout.ts'
import { ctKey, older } from '../../maps/shapes.ts'
import { TAKEOVER_MS } from './takeover.ts'

/** What it needs of np_older; `BpfMap` has it. */
export interface OlderMap extends ChunkedMap {
  readonly keyBytes: number
  readonly valueBytes: number
  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): number
  deleteBatch(keys: Uint8Array, count: number): number
}

/** Where programs read it, and the types of theirs. */
export interface OlderTable {
  readonly map: OlderMap
  readonly btf: Btf
}

export interface OlderConnectionsOptions {
  readonly clock: Clock
  readonly log: Log
  /** ms of the programs' clock */
  readonly monotonicMs: () => number
  /** a socket for one dump; undefined: the kernel tracks no connections */
  readonly open: () => NetlinkTransport | undefined
  /** addresses of this node's pods */
  readonly pods: () => Iterable<Addr>
  /** undefined while no programs are loaded */
  readonly table: () => OlderTable | undefined
  /** what is wanted is known, and in place */
  readonly serves: () => boolean
}

const TICK_MS = 1000
/** A look ends after this time, and keeps what it has found. */
const PATIENCE_MS = 5000
/** entries at once */
const ROOM = 1024

/** What a key stands for in two connections that either end opened: the programs could not tell them apart. */
const EITHER = 2
type Opener = Direction | typeof EITHER

export class OlderConnections {
  readonly #options: OlderConnectionsOptions
  #isFirstStart = false
  #servesSince: number | undefined
  #isOver = false

  constructor(options: OlderConnectionsOptions) {
    this.#options = options
  }

  /** Before the first programs of ours are at any hook. Never rejects. */
  async begin(table: OlderTable): Promise<void> {
    this.#isFirstStart = true
    await this.#look(table)
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick() })
  }

  /** Does what is due: a second look for what was opened before the last hook had its program, and the end. */
  async tick(): Promise<void> {
    const { clock, serves, table: find } = this.#options
    const table = this.#isOver || !serves() ? undefined : find()
    if (table === undefined) return
    if (this.#servesSince === undefined) {
      this.#servesSince = clock.now()
      if (this.#isFirstStart) await this.#look(table)
    } else if (clock.now() - this.#servesSince > TAKEOVER_MS) {
      await this.#forget(table)
    }
  }

  async #look(table: OlderTable): Promise<void> {
    const { clock, log, open } = this.#options
    const began = clock.now()
    try {
      const socket = open()
      if (socket === undefined) return
      const openers = new Openers(this.#options.pods(), table.btf)
      const isWhole = await this.#read(socket, openers)
      const fits = await write(table, openers.byKey, this.#options.monotonicMs() + TAKEOVER_MS)
      const found = { connections: openers.connections, entries: openers.byKey.size, isWhole, fits }
      log.info({ ...found, ms: Math.round(clock.now() - began) }, 'older-connections.found')
    } catch (thrown) {
      log.warn({ error: thrown }, 'older-connections.not-found')
    }
  }

  async #read(socket: NetlinkTransport, openers: Openers): Promise<boolean> {
    const patience = new AbortController()
    const cancel = this.#options.clock.after(PATIENCE_MS, () => {
      patience.abort()
    })
    try {
      return await dumpLong(socket, {
        request: { what: 'list connections', type: GET_CONNECTIONS, payload: encodeConnectionDump() },
        signal: patience.signal,
        take: ({ payload }) => {
          const connection = decodeConnection(payload)
          if (connection !== undefined) openers.add(connection.sent, connection.answered)
        },
      })
    } finally {
      cancel()
    }
  }

  /** Nothing of it is believed any more. */
  async #forget({ map }: OlderTable): Promise<void> {
    try {
      for await (const { keys, count } of chunksOf(map, ROOM)) map.deleteBatch(keys, count)
      this.#isOver = true
    } catch (thrown) {
      // a map that is replaced is closed: the next tick has the other
      if (errorCode(thrown) === 'EBADF') return
      this.#isOver = true
      this.#options.log.warn({ error: thrown }, 'older-connections.not-forgotten')
    }
  }
}

/** By the key of what pods see: the end that opened it. */
class Openers {
  readonly byKey = new Map<string, Opener>()
  connections = 0
  readonly #pods: ReadonlySet<Addr>
  readonly #keyText

  constructor(pods: Iterable<Addr>, btf: Btf) {
    this.#pods = new Set(pods)
    this.#keyText = textWriter(bindKey(ctKey, structLayout(btf, 'ct_key')))
  }

  /** A translated one is seen as the client sends it, and as the server answers. */
  add(sent: Tuple, answered: Tuple): void {
    this.connections++
    this.#note(sent, 'asks')
    this.#note(answered, 'answers')
  }

  #note(tuple: Tuple, how: 'asks' | 'answers'): void {
    if (!this.#pods.has(tuple.src) && !this.#pods.has(tuple.dst)) return
    const [key, direction] = flowKey(tuple, { proto: 6, lane: 0 })
    const opener = how === 'asks' ? direction : direction === 0 ? 1 : 0
    const text = this.#keyText(key)
    const known = this.byKey.get(text) ?? opener
    this.byKey.set(text, known === opener ? opener : EITHER)
  }
}

/** False: there was no room for all of them. */
async function write({ map, btf }: OlderTable, openers: ReadonlyMap<string, Opener>, until: number): Promise<boolean> {
  const codec = bind(older, structLayout(btf, 'older'))
  const values = ([0, 1] as const).map((opener) => encodeBytes(codec, { until, opener }).toString('latin1'))
  let [keys, rows, count] = ['', '', 0]
  try {
    for (const [key, opener] of openers) {
      if (opener === EITHER) continue
      keys += key
      rows += values[opener] ?? ''
      if (++count < ROOM) continue
      map.updateBatch(Buffer.from(keys, 'latin1'), Buffer.from(rows, 'latin1'), count)
      ;[keys, rows, count] = ['', '', 0]
      // others have their turn
      await setImmediate()
    }
    map.updateBatch(Buffer.from(keys, 'latin1'), Buffer.from(rows, 'latin1'), count)
    return true
  } catch (thrown) {
    if (errorCode(thrown) === 'E2BIG') return false
    throw thrown
  }
}

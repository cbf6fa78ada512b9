// SPDX-License-Identifier: Apache-2.0
/** Flows in the tunnel go on when the node at its other end has another address. Layer: agent/dataplane.
 *
 * An entry knows that node by its address alone: packets would go to where it was, and its own would be taken for
 * another's. */
import { setTimeout } from 'node:timers/promises'
import { errorCode } from '#lib/base/errors.ts'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { Log } from '#lib/obs/log.ts'
import { chunksOf } from '../../maps/chunks.ts'
import type { FlowTable } from './gc.ts'

export interface NodeMovesOptions {
  readonly clock: Clock
  readonly log: Log
  /** undefined while there is none, or another takes its place */
  readonly table: () => FlowTable | undefined
}

/** Addresses that a node had, and has instead. */
export type NodeMove = readonly [from: Addr, to: Addr]

const TICK_MS = 1000
const ROOM = 1000
const EXISTING = 2

export class NodeMoves {
  readonly #options: NodeMovesOptions
  /** by the address that entries have: where that node is now */
  #moves = new Map<string, Addr>()

  constructor(options: NodeMovesOptions) {
    this.#options = options
  }

  /** All at once: nodes may change places. */
  note(moves: readonly NodeMove[]): void {
    this.#moves = oneAfterTheOther(this.#moves, new Map(moves))
  }

  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick() })
  }

  /** Tried again until it is done. */
  async tick(): Promise<void> {
    const table = this.#options.table()
    if (table === undefined || this.#moves.size === 0) return
    const moves = this.#moves
    this.#moves = new Map()
    try {
      const moved = await this.#walk(table, moves)
      if (moved > 0) this.#options.log.info({ flows: moved, nodes: moves.size }, 'flows.rerouted')
    } catch (thrown) {
      this.#moves = oneAfterTheOther(moves, this.#moves)
      // a table that is replaced is closed
      if (errorCode(thrown) !== 'EBADF') this.#options.log.warn({ error: thrown }, 'flows.reroute-failed')
    }
  }

  async #walk(table: FlowTable, moves: ReadonlyMap<string, Addr>): Promise<number> {
    const { map, reader } = table
    const target = (value: Buffer): Addr | undefined => moves.get(reader.via(value).toString('latin1'))
    let moved = 0
    for await (const chunk of chunksOf(map, ROOM)) {
      for (let at = 0; at < chunk.count; at++) {
        if (target(chunk.values.subarray(at * map.valueBytes)) === undefined) continue
        const key = chunk.keys.subarray(at * map.keyBytes, (at + 1) * map.keyBytes)
        // as it is now: programs write it as well, and what they write in this microsecond comes again with the next
        // packet
        const value = map.lookup(key)
        const to = value && target(value)
        if (value === undefined || to === undefined) continue
        reader.via(value).write(to, 'latin1')
        if (
          updated(() => {
            map.update(key, value, EXISTING)
          })
        )
          moved++
      }
      await setTimeout(0)
    }
    return moved
  }
}

/** An address stands for the node that had it first. */
function oneAfterTheOther(first: ReadonlyMap<string, Addr>, then: ReadonlyMap<string, Addr>): Map<string, Addr> {
  return new Map([...then, ...[...first].map(([from, to]) => [from, then.get(to) ?? to] as const)])
}

/** False when the entry has gone meanwhile. */
function updated(update: () => void): boolean {
  try {
    update()
    return true
  } catch (thrown) {
    if (errorCode(thrown) !== 'ENOENT') throw thrown
    return false
  }
}

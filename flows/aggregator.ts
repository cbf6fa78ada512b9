// SPDX-License-Identifier: Apache-2.0
/** What the APIs of the aggregator have in common: the store, what comes, and what is counted. Layer: flows. */
import { randomBytes } from 'node:crypto'
import type { Received } from '#lib/flows/wire/codec.ts'
import type { Log } from '#lib/obs/log.ts'
import { Feed } from './live/feed.ts'
import type { FlowStore, TakenUpdate } from './store/store.ts'

/** Since the start of the process. */
export interface Counts {
  /** updates by what became of them */
  readonly updates: Record<TakenUpdate | 'unreadable', number>
  /** hits of kinds that this version does not know */
  unknownHits: number
  /** flows that followers were not told */
  omitted: number
  /** followers that did not read */
  cutOff: number
}

export function noCounts(): Counts {
  const updates = { new: 0, replaced: 0, late: 0, known: 0, untimely: 0, unreadable: 0 }
  return { updates, unknownHits: 0, omitted: 0, cutOff: 0 }
}

/** A node, as the aggregator knows it. */
export interface NodeState {
  /** records that it has lost since its start, as it says */
  readonly lost: number
  /** ms since 1970 of its last update */
  readonly seen: number
}

export interface AggregatorOptions {
  readonly store: FlowStore
  readonly log: Log
  /** ms since 1970 */
  readonly wall: () => number
  readonly signal: AbortSignal
}

/** Nodes that are remembered; those that come first. */
const MOST_NODES = 10_000

export class Aggregator {
  readonly store: FlowStore
  readonly feed = new Feed()
  /** of this process alone: what it has told it can tell again */
  readonly boot = randomBytes(6).toString('hex')
  /** streams end when it aborts */
  readonly signal: AbortSignal
  readonly count = noCounts()
  readonly #log: Log
  readonly #wall: () => number
  readonly #nodes = new Map<string, NodeState>()
  #collectors = 0

  constructor({ store, log, wall, signal }: AggregatorOptions) {
    this.store = store
    this.signal = signal
    this.#log = log
    this.#wall = wall
    store.listen((change) => {
      this.feed.take(change)
    })
  }

  /** connections of nodes */
  get collectors(): number {
    return this.#collectors
  }

  get nodes(): ReadonlyMap<string, NodeState> {
    return this.#nodes
  }

  /** seconds since 1970 */
  readonly now = (): number => Math.floor(this.#wall() / 1000)

  /** An answer that could not be given. */
  failed(thrown: unknown): void {
    this.#log.error({ error: thrown }, 'request.failed')
  }

  /** One connection that updates come by. */
  collector(peer: string): Collector & Disposable {
    this.#collectors++
    this.#log.info({ peer }, 'collector.connected')
    let toldUnreadable = false
    return {
      take: (received) => {
        this.count.updates[this.#take(received, peer)]++
        if (received.kind === 'update' || toldUnreadable) return
        // of one connection only the first: there may be thousands
        toldUnreadable = true
        this.#log.warn({ peer, reason: received.reason }, 'update.unreadable')
      },
      [Symbol.dispose]: () => {
        this.#collectors--
        this.#log.info({ peer }, 'collector.gone')
      },
    }
  }

  #take(received: Received, peer: string): TakenUpdate | 'unreadable' {
    if (received.kind === 'unreadable') return 'unreadable'
    const { origin, lost, unknownHits } = received
    this.count.unknownHits += unknownHits
    if (origin !== undefined && (this.#nodes.has(origin.node) || this.#nodes.size < MOST_NODES))
      this.#nodes.set(origin.node, { lost, seen: this.#wall() })
    return this.store.take(received, peer)
  }
}

export interface Collector {
  readonly take: (received: Received) => void
}

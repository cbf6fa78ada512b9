// SPDX-License-Identifier: Apache-2.0
/** Tells an aggregator of the node's flows, whatever becomes of it: a node never waits. Layer: agent/flows. */
import { readFileSync } from 'node:fs'
import { backoffMs } from '#lib/base/backoff.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Flows } from './flows.ts'
import { MOST_UPDATES } from './history.ts'
import { Outgoing } from './outgoing.ts'

/** Where an aggregator is, and how each end knows the other. */
export interface FlowTarget {
  /** "https://10.0.0.1:7443"; http to this machine alone */
  readonly url: string
  /** files in PEM, read for each connection; undefined with http */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string } | undefined
}

export interface SenderOptions {
  readonly target: FlowTarget
  readonly flows: Pick<Flows, 'listen' | 'lose' | 'facts'>
  readonly clock: Clock
  readonly log: Log
  readonly health: Pick<Health, 'expect' | 'pass' | 'fail'>
}

/** Condition: the aggregator takes what this node tells. */
export const TOLD = 'flows.told'

/** An aggregator that was killed has lost the windows that were open: they are told again, and count once. */
const REPLAY_SECONDS = 300
const BACKOFF = { firstMs: 1000, maxMs: 10_000 }

export class FlowSender {
  readonly #options: SenderOptions
  /** the last one that was taken */
  #taken = 0
  #failure: string | undefined

  constructor(options: SenderOptions) {
    this.#options = options
    options.health.expect(TOLD, 'none')
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const isOver = (): boolean => signal.aborted
    // programs tell also while there is no aggregator: it hears of it later
    using stack = new DisposableStack()
    stack.use(this.#options.flows.listen(() => undefined))
    for (let attempt = 0; !isOver(); attempt++) {
      const taken = this.#taken
      await this.#connect(signal).then(
        () => {
          if (!isOver()) this.#fail('the aggregator has ended the connection')
        },
        (thrown: unknown) => {
          if (!isOver()) this.#fail(errorText(thrown))
        },
      )
      if (this.#taken > taken) attempt = 0
      if (!isOver()) await clock.sleep(backoffMs(BACKOFF, attempt, Math.random()), signal).catch(() => undefined)
    }
  }

  /** Resolves or rejects when the connection is over. */
  async #connect(signal: AbortSignal): Promise<void> {
    const { target, flows, clock } = this.#options
    const over = new AbortController()
    const either = AbortSignal.any([signal, over.signal])
    const outgoing = new Outgoing(MOST_UPDATES)
    const since = clock.wall() / 1000 - REPLAY_SECONDS
    const isDue = ({ sequence, window }: FlowUpdate): boolean => sequence > this.#taken || window.start >= since
    using stack = new DisposableStack()
    stack.use(
      flows.listen((updates) => {
        flows.lose(outgoing.add(updates.filter(isDue)))
      }),
    )
    try {
      const { openCollector } = await import('#agent/flows/collector.ts')
      const collector = stack.use(openCollector({ url: target.url, ...readTls(target) }))
      const sent: number[] = []
      const told = async function* (): AsyncGenerator<readonly [FlowUpdate, number]> {
        for await (const update of outgoing.messages(either)) {
          sent.push(update.sequence)
          yield [update, flows.facts.lost + flows.facts.untaken]
        }
      }
      const receipts = collector.connect(told(), either)[Symbol.asyncIterator]()
      while ((await receipts.next()).done !== true) {
        this.#taken = Math.max(this.#taken, sent.shift() ?? 0)
        outgoing.acknowledge()
        this.#pass()
      }
    } finally {
      over.abort()
    }
  }

  #pass(): void {
    const { health, log, target } = this.#options
    health.pass(TOLD)
    if (this.#failure !== undefined) log.info({ server: target.url }, 'flows.told-again')
    this.#failure = undefined
  }

  #fail(reason: string): void {
    const { health, log, target } = this.#options
    health.fail(TOLD, `the aggregator at ${target.url} does not take this node's flows: ${reason}`)
    if (reason !== this.#failure) log.warn({ server: target.url, reason }, 'flows.not-told')
    this.#failure = reason
  }
}

function readTls({ tls }: FlowTarget): { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer } {
  return tls === undefined ? {} : { ca: readFileSync(tls.ca), cert: readFileSync(tls.cert), key: readFileSync(tls.key) }
}

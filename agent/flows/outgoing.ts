// SPDX-License-Identifier: Apache-2.0
/** Windows on their way to an aggregator: bounded, each until it is acknowledged. Layer: agent/flows (pure). */
import type { FlowUpdate } from '#lib/flows/flow.ts'

/** So many may be on the wire without an answer. */
const IN_FLIGHT = 256

export class Outgoing {
  readonly #most: number
  readonly #waiting: FlowUpdate[] = []
  #inFlight = 0
  #wake: () => void = () => undefined

  /** `most`: beyond these the oldest are dropped */
  constructor(most: number) {
    this.#most = most
  }

  /** Returns how many were dropped for them. */
  add(updates: readonly FlowUpdate[]): number {
    for (const update of updates) this.#waiting.push(update)
    const dropped = this.#waiting.splice(0, Math.max(0, this.#waiting.length - this.#most))
    this.#wake()
    return dropped.length
  }

  /** One of those that are on the wire has been taken. */
  acknowledge(): void {
    this.#inFlight--
    this.#wake()
  }

  /** In their order, as long as the signal does not abort. */
  async *messages(signal: AbortSignal): AsyncGenerator<FlowUpdate> {
    const isOver = (): boolean => signal.aborted
    signal.addEventListener('abort', () => {
      this.#wake()
    })
    while (!isOver()) {
      const next = this.#inFlight < IN_FLIGHT ? this.#waiting.shift() : undefined
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        continue
      }
      this.#inFlight++
      yield next
    }
  }
}

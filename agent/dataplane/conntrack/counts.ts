// SPDX-License-Identifier: Apache-2.0
/** Flows counted while the table is walked. Layer: agent/dataplane (pure data structure). */
import type { FlowProtocol, FlowState } from '../../maps/flow-states.ts'
import type { FlowEntry } from './reader.ts'

export interface FlowCount {
  readonly proto: FlowProtocol
  readonly state: FlowState
  readonly translated: boolean
  /** flows, not entries */
  readonly flows: number
}

export class ConntrackCounts {
  /** entries that programs go by */
  live = 0
  /** those of them that make room before others do */
  evictedFirst = 0
  /** entries that they take for none */
  expired = 0
  /** live flows that the kernel translates for kube-proxy */
  proxied = 0
  /** live flows from the network that programs translate */
  fromNetwork = 0
  readonly #counts = new Map<string, { readonly of: Omit<FlowCount, 'flows'>; entries: number }>()

  add({ proto, state, translated, proxied, fromNetwork, evictedFirst, expiredMs }: FlowEntry): void {
    if (expiredMs > 0) {
      this.expired++
      return
    }
    this.live++
    if (evictedFirst) this.evictedFirst++
    if (proxied) this.proxied++
    if (fromNetwork) this.fromNetwork++
    const key = `${proto} ${state} ${String(translated)}`
    const count = this.#counts.get(key)
    if (count === undefined) this.#counts.set(key, { of: { proto, state, translated }, entries: 1 })
    else count.entries++
  }

  /** live entries of flows of both ends: they make room only where there are no others */
  get kept(): number {
    return this.live - this.evictedFirst
  }

  get entries(): number {
    return this.live + this.expired
  }

  /** Of live ones. A translated flow is counted once, though it has two entries. */
  counts(): FlowCount[] {
    return [...this.#counts.values()].map(({ of, entries }) => ({ ...of, flows: of.translated ? Math.ceil(entries / 2) : entries }))
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Has the programs judge again the flows that they let be before, and keeps what else np_state says of the node.
 * Layer: agent/dataplane. */
import { bind, type Codec } from '#agent/maps/codec.ts'
import { structLayout } from '#agent/maps/layout.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { nodeState, type NodeState } from '#agent/maps/shapes.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { failure, NOTHING_DONE, type Outcome, type ReconcileStep } from '../reconcile/step.ts'

/** Besides this code, maps/node-state.ts writes to it, and the beginning of a takeover: each at once, its fields. */
export interface StateMap {
  lookup(key: Uint8Array): Uint8Array | undefined
  update(key: Uint8Array, value: Uint8Array): void
}

export interface EpochOptions {
  readonly map: StateMap
  readonly btf: Btf
  /** ms of a clock that never goes back */
  readonly now: () => number
}

/** Each step makes every flow take the slow path once; and the low byte that flows keep must not come round while
 * one of them sleeps less than what has it judged anyway. */
const LEAST_MS = 250
const KEY = new Uint8Array(4)

export class Epoch implements ReconcileStep {
  readonly name = 'epoch'
  readonly #options: EpochOptions
  readonly #codec: Codec<NodeState>
  #marked = false
  /** undefined: as the map has it */
  #ownPrefixes: number | undefined
  #last = Number.NEGATIVE_INFINITY

  constructor(options: EpochOptions) {
    this.#options = options
    this.#codec = bind(nodeState, structLayout(options.btf, 'node_state'))
  }

  /** What was marked takes effect when it is due. */
  mark(): void {
    this.#marked = true
  }

  /** So many rows has RANGE_OWN. Flows that began with another number are judged again. */
  setOwnPrefixes(count: number): void {
    this.#ownPrefixes = count
    if (this.#state().own_prefixes !== count) this.mark()
  }

  /** ms until there is something to do; undefined when nothing is marked */
  get dueMs(): number | undefined {
    return this.#marked ? Math.max(0, this.#last + LEAST_MS - this.#options.now()) : undefined
  }

  pending(): boolean {
    return this.dueMs === 0
  }

  apply(): Outcome {
    if (!this.#marked) return NOTHING_DONE
    const { map, now } = this.#options
    const state = this.#state()
    const own_prefixes = this.#ownPrefixes ?? state.own_prefixes
    try {
      map.update(KEY, encodeBytes(this.#codec, { ...state, epoch: (state.epoch + 1) >>> 0, own_prefixes }))
    } catch (cause) {
      return { done: 0, failures: [failure('np_state', cause)] }
    }
    this.#marked = false
    this.#last = now()
    return { done: 1, failures: [] }
  }

  #state(): NodeState {
    return decodeBytes(this.#codec, this.#options.map.lookup(KEY) ?? new Uint8Array(this.#codec.size))
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Whether programs count packets of flows, and tell of them. Layer: agent/dataplane. */
import { bind, type Codec } from '#agent/maps/codec.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { nodeState, type NodeState } from '#agent/maps/shapes.ts'
import type { StateMap } from './policy/epoch.ts'

const KEY = new Uint8Array(4)

export class Accounts {
  readonly #map: StateMap
  readonly #codec: Codec<NodeState>

  constructor(map: StateMap, btf: Btf) {
    this.#map = map
    this.#codec = bind(nodeState, structLayout(btf, 'node_state'))
  }

  /** Of every flow, from its next packet on. Throws the kernel's error. */
  set(on: boolean): void {
    const state = decodeBytes(this.#codec, this.#map.lookup(KEY) ?? new Uint8Array(this.#codec.size))
    if (state.accounts !== Number(on)) this.#map.update(KEY, encodeBytes(this.#codec, { ...state, accounts: Number(on) }))
  }
}

// SPDX-License-Identifier: Apache-2.0
/** The time in which connections that another proxy made are let through and remembered. Layer: agent/dataplane. */
import { bind } from '../../maps/codec.ts'
import { structLayout } from '../../maps/layout.ts'
import type { Btf } from '../../maps/btf.ts'
import { nodeState } from '../../maps/shapes.ts'
import { encodeBytes } from '../../maps/byte-rows.ts'

/** Long enough for a connection that is in use to be seen: keep-alives of most are more frequent. What is idle for
 * longer is left to its ends. */
export const TAKEOVER_MS = 60_000

/** From now on; `nowMs` of the programs' clock. With the epoch of new programs: flows of before are judged again
 * with their next packet. */
export function beginTakeover(map: { update(key: Uint8Array, value: Uint8Array): void }, btf: Btf, nowMs: number): void {
  const codec = bind(nodeState, structLayout(btf, 'node_state'))
  const none = { epoch: 0, own_prefixes: 0, accounts: 0, tunnel_device: 0 }
  map.update(new Uint8Array(4), encodeBytes(codec, { ...none, takeover_until: nowMs + TAKEOVER_MS }))
}

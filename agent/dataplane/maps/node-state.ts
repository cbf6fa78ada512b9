// SPDX-License-Identifier: Apache-2.0
/** Single fields of np_state, which several parts of the agent write. Layer: agent/dataplane. */
import { bind } from '#agent/maps/codec.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { nodeState, type NodeState } from '#agent/maps/shapes.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { StateMap } from '../policy/epoch.ts'

const KEY = new Uint8Array(4)

/** Writes these fields; all others keep their values. Throws the kernel's error. */
export function setNodeState(map: StateMap, btf: Btf, fields: Partial<Omit<NodeState, 'epoch' | 'own_prefixes'>>): void {
  const codec = bind(nodeState, structLayout(btf, 'node_state'))
  const before = decodeBytes(codec, map.lookup(KEY) ?? new Uint8Array(codec.size))
  const after = { ...before, ...fields }
  if (!deepEqual(before, after)) map.update(KEY, encodeBytes(codec, after))
}

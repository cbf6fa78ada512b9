// SPDX-License-Identifier: Apache-2.0
/** The ring of flows that were entered last, filled for a flow table that comes without: programs look there alone for
 * a flow that makes room. Layer: agent/dataplane. */
import { chunksOf, type ChunkedMap } from '../../maps/chunks.ts'

/** What it needs of np_recent; `BpfMap` has it. */
export interface RecentMap {
  readonly valueBytes: number
  info(): { readonly maxEntries: number }
  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): number
}

const CHUNK = 1024

/** With flows of the table, in any order. A table with fewer has room. */
export async function fillRecent(recent: RecentMap, table: ChunkedMap): Promise<void> {
  const slots = recent.info().maxEntries
  let slot = 0
  for await (const { keys, count } of chunksOf(table, CHUNK)) {
    const fits = Math.min(count, slots - slot)
    if (fits === 0) return
    const places = Uint32Array.from({ length: fits }, (_, at) => slot + at)
    recent.updateBatch(new Uint8Array(places.buffer), keys.subarray(0, fits * recent.valueBytes), fits)
    slot += fits
  }
}

// SPDX-License-Identifier: Apache-2.0
/** How large the flow table may become. Layer: agent/dataplane (pure). */

/** Of what the settings say; each doubling costs the node memory for good. */
const MOST_TIMES = 8
/** Of the memory that is free: an allocation that fails leaves things as they are, one that succeeds must leave room
 * for pods. */
const MOST_OF_FREE = 0.25
/** What the kernel adds to each key and value of such a map. */
const OVERHEAD_BYTES = 64

/** Room after one more doubling; undefined when it is large enough as it is. */
export function doubled(table: {
  readonly room: number
  readonly configured: number
  readonly entryBytes: number
  readonly freeBytes: number
}): number | undefined {
  const room = 2 * table.room
  if (room > MOST_TIMES * table.configured) return undefined
  return room * (table.entryBytes + OVERHEAD_BYTES) > MOST_OF_FREE * table.freeBytes ? undefined : room
}

/** A table that has grown stays so over a restart, as long as that was by doubling what the settings say. */
export function keptRoom(configured: number, found: number | undefined): number {
  const doublings = Math.log2((found ?? configured) / configured)
  return found !== undefined && doublings > 0 && Number.isInteger(doublings) && 2 ** doublings <= MOST_TIMES ? found : configured
}

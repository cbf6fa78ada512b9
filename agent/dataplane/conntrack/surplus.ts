// SPDX-License-Identifier: Apache-2.0
/** Which flows go when a table has no room for all: those that are over or evicted first, then those that have been
 * idle longest. Layer: agent/dataplane (pure). */
import type { FlowEntry } from './reader.ts'

/** Of a table's room so much is made at a time at the cost of flows of both ends. */
export const GIVEN_UP = 1 / 16
/** What programs evict first goes after this time. The two entries of a translated flow are not touched by the same
 * packets: one may seem 3 s older than the other. */
export const FIRST_MS = 4000

/** Does it go before any flow of both ends? */
export function goesFirst({ expiredMs, evictedFirst, idleMs }: FlowEntry): boolean {
  return expiredMs > 0 || (evictedFirst && idleMs > FIRST_MS)
}

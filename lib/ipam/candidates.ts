// SPDX-License-Identifier: Apache-2.0
/** Which block a node is to try to take next. Layer: lib/ipam (pure). */
import { formatCidr } from '../base/ip.ts'
import type { Cidr } from '../base/ip.ts'
import { fnv1a64, mix32 } from '../base/hash.ts'
import type { IPPool } from '../model/ip-pool.ts'
import { blockAt, blockCount, overlaps } from '../base/range.ts'

/** Each node begins somewhere else, so that many that start at once do not want the same ones. Ends with the pool, or after so many that
 * nobody goes on. */
export function* candidates(pool: Pick<IPPool, 'cidr' | 'blockBits'>, node: string, taken: readonly Cidr[]): Generator<Cidr> {
  const count = blockCount(pool.cidr, pool.blockBits)
  const reach = Math.min(count, MOST_CANDIDATES)
  const start = startOf(node) % reach
  // most blocks of a pool are of one size: asking one by one would take the square of their number
  const alike = new Set(taken.filter(({ bits }) => bits === pool.blockBits).map(formatCidr))
  const others = taken.filter(({ bits }) => bits !== pool.blockBits)
  for (let at = 0; at < reach; at++) {
    const block = blockAt(pool.cidr, { bits: pool.blockBits, number: (start + at) % reach })
    if (!alike.has(formatCidr(block)) && !others.some((one) => overlaps(one, block))) yield block
  }
}

/** Blocks of a pool that are ever used: a pool of IPv6 may have more than there are numbers. */
const MOST_CANDIDATES = 1 << 20

function startOf(node: string): number {
  return mix32(Number.parseInt(fnv1a64(node).slice(8), 16))
}

// SPDX-License-Identifier: Apache-2.0
/** Which block a node is to try to take next. Layer: lib/ipam (pure). */
import { formatCidr } from '../base/ip.ts'
import type { Cidr } from '../base/ip.ts'
import { fnv1a64, mix32 } from '../base/hash.ts'
import type { IPPool } from '../model/ip-pool.ts'
import { blockAt, blockCount, overlaps } from '../base/range.ts'

/** Each node begins somewhere else, so that many that start at once do not want the same ones. Ends with the pool,
 * or after so many that no node goes on. */
export function* candidates(pool: Pick<IPPool, 'cidr' | 'blockBits'>, node: string, taken: readonly Cidr[]): Generator<Cidr> {
  const bits = pool.blockBits
  // most blocks of a pool are of one size: asking one by one would take the square of their number
  const alike = new Set(taken.filter((one) => one.bits === bits).map(formatCidr))
  // a range of another node may have more blocks than a loop can pass over one by one
  const parts = without(
    pool.cidr,
    taken.filter((one) => one.bits !== bits),
    bits,
  )
  const reach = Math.min(
    parts.reduce((sum, part) => sum + blockCount(part, bits), 0),
    MOST_CANDIDATES,
  )
  const start = startOf(node) % Math.max(1, reach)
  for (let at = 0; at < reach; at++) {
    const block = blockOf(parts, bits, (start + at) % reach)
    if (block !== undefined && !alike.has(formatCidr(block))) yield block
  }
}

/** What is left of the range, in prefixes that whole blocks fit in. */
function without(range: Cidr, taken: readonly Cidr[], blockBits: number): readonly Cidr[] {
  const inside = taken.filter((one) => overlaps(one, range))
  if (inside.length === 0) return [range]
  if (range.bits >= blockBits || inside.some((one) => one.bits <= range.bits)) return []
  return [0, 1].flatMap((number) => without(blockAt(range, { bits: range.bits + 1, number }), inside, blockBits))
}

function blockOf(parts: readonly Cidr[], bits: number, number: number): Cidr | undefined {
  let left = number
  for (const part of parts) {
    const count = blockCount(part, bits)
    if (left < count) return blockAt(part, { bits, number: left })
    left -= count
  }
  return undefined
}

/** Blocks of a pool that are ever used: a pool of IPv6 may have more than there are numbers. */
const MOST_CANDIDATES = 1 << 20

function startOf(node: string): number {
  return mix32(Number.parseInt(fnv1a64(node).slice(8), 16))
}

// SPDX-License-Identifier: Apache-2.0
/** A block of which pods of several nodes have addresses → blocks of one node each. Layer: upgrade (pure).
 *
 * Nodes lend each other no addresses here. An agent that finds a holder which is no sandbox of its node takes the
 * address back, and the network sends what is for it to the node of the block. */
import type { Cidr } from '#lib/base/ip.ts'
import { blockAt, rangeSize } from '#lib/base/range.ts'
import type { Holder, IPBlock } from '#lib/model/ip-block.ts'

/** Who has an address, and on which node. */
export interface Resident {
  readonly node: string
  readonly holder: Holder
}

export interface WholeBlock {
  readonly cidr: Cidr
  /** of addresses that no resident has */
  readonly node: string
  /** indexes count from the first address */
  readonly residents: ReadonlyMap<number, Resident>
  readonly freed: ReadonlyMap<number, number>
}

/** In the order of their addresses. */
export function piecesOf(block: WholeBlock): readonly IPBlock[] {
  return split(block, block.cidr, 0)
}

function split(block: WholeBlock, cidr: Cidr, first: number): readonly IPBlock[] {
  const size = rangeSize(cidr)
  const inside = Array.from({ length: size }, (_, at) => block.residents.get(first + at))
  const [node, other] = new Set(inside.map((resident) => resident?.node ?? block.node))
  if (other === undefined) return [pieceOf(block, { cidr, first, node: node ?? block.node })]
  const half = (number: number): Cidr => blockAt(cidr, { bits: cidr.bits + 1, number })
  return [...split(block, half(0), first), ...split(block, half(1), first + size / 2)]
}

function pieceOf(
  { residents, freed }: WholeBlock,
  { cidr, first, node }: { readonly cidr: Cidr; readonly first: number; readonly node: string },
): IPBlock {
  const end = first + rangeSize(cidr)
  const own = <T>(values: ReadonlyMap<number, T>): (readonly [number, T])[] =>
    [...values].filter(([index]) => index >= first && index < end).map(([index, value]) => [index - first, value] as const)
  return { cidr, node, held: new Map(own(residents).map(([index, { holder }]) => [index, holder])), freed: new Map(own(freed)) }
}

// SPDX-License-Identifier: Apache-2.0
/** Which blocks of addresses are of nodes that are gone, and may be taken back. Layer: controllers (pure). */
import { cidrContains, type Addr } from '#lib/base/ip.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'

export interface AbandonedInput<B extends { readonly block: IPBlock }> {
  readonly blocks: readonly B[]
  /** those that the cluster has */
  readonly nodes: ReadonlySet<string>
  /** that some pod has, whatever blocks say of them */
  readonly inUse: readonly Addr[]
  /** by node: since when it has been gone, in ms */
  readonly goneSince: ReadonlyMap<string, number>
  readonly now: number
  readonly graceMs: number
}

export interface AbandonedBlocks<B> {
  /** to be deleted */
  readonly blocks: readonly B[]
  /** as it is to be remembered */
  readonly goneSince: ReadonlyMap<string, number>
}

/** A node that has been gone for the grace, and of whose blocks no pod has an address any more. */
export function abandonedBlocks<B extends { readonly block: IPBlock }>(input: AbandonedInput<B>): AbandonedBlocks<B> {
  const { blocks, nodes, inUse, goneSince, now, graceMs } = input
  const left = blocks.filter(({ block }) => !nodes.has(block.node))
  const since = new Map(left.map(({ block }) => [block.node, goneSince.get(block.node) ?? now]))
  const isOver = ({ node }: IPBlock): boolean => now - (since.get(node) ?? now) >= graceMs
  const isUsed = ({ cidr }: IPBlock): boolean => inUse.some((addr) => cidrContains(cidr, addr))
  return { blocks: left.filter(({ block }) => isOver(block) && !isUsed(block)), goneSince: since }
}

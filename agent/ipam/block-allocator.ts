// SPDX-License-Identifier: Apache-2.0
/** Takes new blocks of pools for a node. Layer: agent/ipam. */
import { cidrContains, type Addr, type Cidr } from '#lib/base/ip.ts'
import { assign, emptyBlock, type AssignOptions } from '#lib/ipam/block.ts'
import { candidates } from '#lib/ipam/candidates.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { BlockStore } from './block-store.ts'
import type { OwnBlocks } from './own-blocks.ts'

export interface BlockAllocatorOptions {
  readonly node: string
  /** what other nodes may want as well */
  readonly shared: BlockStore
  /** of those, this node's */
  readonly own: OwnBlocks
}

export interface Claim {
  /** of the first address */
  readonly options: AssignOptions
  /** ranges of other nodes that the store does not tell apart from a new block */
  readonly elsewhere: readonly Cidr[]
  /** pods of other nodes have addresses of the range */
  readonly isInhabited: (range: Cidr) => boolean
  /** its node is gone for good: any node may take the block */
  readonly isAbandoned: (block: IPBlock) => boolean
}

/** After so many that others have it is time to look at all. */
const BLIND_ATTEMPTS = 4

export class BlockAllocator {
  readonly #options: BlockAllocatorOptions

  constructor(options: BlockAllocatorOptions) {
    this.#options = options
  }

  /** An address of a new block of the first of these pools that has one left. Rejects with whatever the store
   * throws. */
  async first(pools: readonly IPPool[], claim: Claim): Promise<Addr | undefined> {
    for (const pool of pools) {
      const addr = await this.#ofPool(pool, claim)
      if (addr !== undefined) return addr
    }
    return undefined
  }

  /** First without looking, then by what all others have, at last one of a node that is gone. */
  async #ofPool(pool: IPPool, claim: Claim): Promise<Addr | undefined> {
    const { shared, own, node } = this.#options
    const known = [...(await own.all()).map(({ block }) => block.cidr), ...claim.elsewhere]
    const oneOf = (cidrs: Iterable<Cidr>): Promise<Addr | undefined> => this.#oneOf(cidrs, pool, claim)
    const blind = await oneOf(candidates(pool, node, known).take(BLIND_ATTEMPTS))
    if (blind !== undefined) return blind
    const all = await shared.all()
    const taken = [...known, ...all.map(({ block }) => block.cidr)]
    const seen = await oneOf(candidates(pool, node, taken))
    if (seen !== undefined) return seen
    const left = all.filter(({ block }) => cidrContains(pool.cidr, block.cidr.addr) && claim.isAbandoned(block))
    for (const stored of left) {
      // what is known of nodes may be old
      const isFree = !(await shared.hasNode(stored.block.node)) && (await shared.remove(stored))
      const addr = isFree ? await oneOf([stored.block.cidr]) : undefined
      if (addr !== undefined) return addr
    }
    return undefined
  }

  /** An address of a new block. The block is created with its holder in it: at no moment does it look unused. */
  async #oneOf(cidrs: Iterable<Cidr>, { cidr: within }: IPPool, { options, isInhabited }: Claim): Promise<Addr | undefined> {
    for (const cidr of cidrs) {
      if (isInhabited(cidr)) continue
      const assigned = assign(emptyBlock(cidr, this.#options.node), { ...options, within })
      if (assigned !== undefined && (await this.#options.own.create(assigned.block)) !== undefined) return assigned.addr
    }
    return undefined
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Where blocks are kept, so that two processes that change the same block find out. Layer: agent/ipam. */
import type { Cidr } from '#lib/base/ip.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'

/** `version` is another one after each change; it is compared, never read. */
export interface StoredBlock {
  readonly block: IPBlock
  readonly version: string
}

export interface BlockStore {
  /** This node's, sorted by name. */
  own(): Promise<readonly StoredBlock[]>
  /** Those of all nodes, as far as this store knows. */
  all(): Promise<readonly StoredBlock[]>
  /** undefined: there is one already */
  create(block: IPBlock): Promise<StoredBlock | undefined>
  /** undefined: it is another one by now, or gone */
  replace(before: StoredBlock, after: IPBlock): Promise<StoredBlock | undefined>
  /** False when it is another one by now. */
  remove(stored: StoredBlock): Promise<boolean>
  /** Whether the cluster has this node just now. */
  hasNode(name: string): Promise<boolean>
  /** Tells the other nodes which ranges of pools lead to this one. Resolves when they can know; rejects with
   * NotYetError while they cannot. */
  announce(ranges: readonly Cidr[]): Promise<void>
}

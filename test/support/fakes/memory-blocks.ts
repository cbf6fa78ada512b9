// SPDX-License-Identifier: Apache-2.0
/** Blocks of many nodes in memory, and nodes that die in the middle of a change. Layer: test. */
import { formatCidr, type Cidr } from '#lib/base/ip.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { BlockStore, StoredBlock } from '#agent/ipam/block-store.ts'

/** What becomes of a change: "lost": it was done, but the caller never hears of it. */
export type Fate = 'done' | 'refused' | 'lost'

export class Dead extends Error {}

export class MemoryBlocks {
  readonly blocks = new Map<string, StoredBlock>()
  readonly announced = new Map<string, readonly Cidr[]>()
  /** that the cluster has, whatever agents have heard */
  readonly nodes = new Set<string>()
  #version = 0

  /** `fate` is asked before each change. */
  store(node: string, fate: () => Fate = () => 'done'): BlockStore {
    const change = async <T>(work: () => T): Promise<T> => {
      // as over a network: others come in between
      await Promise.resolve()
      const will = fate()
      if (will === 'refused') throw new Dead('before')
      const result = work()
      if (will === 'lost') throw new Dead('after')
      return result
    }
    const isStill = ({ block, version }: StoredBlock): boolean => this.blocks.get(formatCidr(block.cidr))?.version === version
    return {
      own: () => Promise.resolve([...this.blocks.values()].filter(({ block }) => block.node === node)),
      all: () => Promise.resolve([...this.blocks.values()]),
      create: (block) => change(() => (this.blocks.has(formatCidr(block.cidr)) ? undefined : this.#put(block))),
      replace: (before, after) => change(() => (isStill(before) ? this.#put(after) : undefined)),
      remove: (stored) => change(() => isStill(stored) && this.blocks.delete(formatCidr(stored.block.cidr))),
      hasNode: (name) => Promise.resolve(this.nodes.has(name)),
      announce: (ranges) =>
        change(() => {
          this.announced.set(node, ranges)
        }),
    }
  }

  #put(block: IPBlock): StoredBlock {
    const stored = { block, version: String(++this.#version) }
    this.blocks.set(formatCidr(block.cidr), stored)
    return stored
  }
}

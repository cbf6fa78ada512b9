// SPDX-License-Identifier: Apache-2.0
/** This node's blocks of one store, as they were last read or written. Besides this agent only the cleanup of abandoned
 * blocks changes them. Layer: agent/ipam. */
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { BlockStore, StoredBlock } from './block-store.ts'

/** The first look may come as soon after the failure as what failed. */
const DOUBTS = 2

export class OwnBlocks {
  readonly #store: BlockStore
  #known: readonly StoredBlock[] | undefined
  /** how many more times `settle` must forget what is known */
  #doubts = 0

  constructor(store: BlockStore) {
    this.#store = store
  }

  async all(): Promise<readonly StoredBlock[]> {
    return (this.#known ??= await this.#store.own())
  }

  /** The next look is a fresh one. */
  forget(): void {
    this.#known = undefined
  }

  /** Called once in a while. The next look is a fresh one when something has failed before: it may have been done
   * after we looked. */
  settle(): void {
    if (this.#doubts === 0) return
    this.#doubts--
    this.forget()
  }

  /** undefined: the store has such a block already */
  async create(block: IPBlock): Promise<StoredBlock | undefined> {
    const before = await this.all()
    const created = await this.#trusting(this.#store.create(block))
    if (created !== undefined) this.#known = [...before, created]
    return created
  }

  /** False when another process changed it first: the next look is a fresh one. */
  async replace(before: StoredBlock, after: IPBlock): Promise<boolean> {
    if (after === before.block) return true
    const all = await this.all()
    const replaced = await this.#trusting(this.#store.replace(before, after))
    this.#known = replaced && all.map((one) => (one === before ? replaced : one))
    return replaced !== undefined
  }

  async remove(blocks: readonly StoredBlock[]): Promise<void> {
    if (blocks.length > 0) this.#known = undefined
    for (const stored of blocks) await this.#store.remove(stored)
  }

  /** What fails may have been done all the same. */
  async #trusting<T>(change: Promise<T>): Promise<T> {
    try {
      return await change
    } catch (thrown) {
      this.#known = undefined
      this.#doubts = DOUBTS
      throw thrown
    }
  }
}

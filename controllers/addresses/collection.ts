// SPDX-License-Identifier: Apache-2.0
/** Takes back blocks of addresses whose nodes are gone. Layer: controllers. */
import type { Clock } from '#lib/base/clock.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import type { LockableApi } from '#lib/api/lockable.ts'
import { listBlocks, listKind, type FoundBlock } from '#lib/api/listed.ts'
import { namedOf } from '#lib/api/resource.ts'
import { statedAddresses } from '#lib/model/pod.ts'
import type { Log } from '#lib/obs/log.ts'
import { abandonedBlocks } from './abandoned.ts'

export interface CollectionOptions {
  readonly client: Pick<ApiClient, 'list'>
  readonly writer: Pick<LockableApi, 'delete'>
  readonly clock: Clock
  readonly log: Log
  /** false once another process may act */
  readonly mayAct: () => boolean
}

export class Collection {
  readonly #options: CollectionOptions
  #goneSince: ReadonlyMap<string, number> = new Map()
  #collected = 0

  constructor(options: CollectionOptions) {
    this.#options = options
  }

  /** How many blocks were taken back. */
  get collected(): number {
    return this.#collected
  }

  /** `nodes`: those that the cluster has. Blocks and pods are read anew: it is seldom, and there may be many. */
  async run(nodes: ReadonlySet<string>, graceMs: number, signal: AbortSignal): Promise<void> {
    const { client, clock, mayAct } = this.#options
    // one that cannot be read stays: whose it is is not known
    const { found: all } = await listBlocks(client, { signal })
    const isLeft = all.some(({ block }) => !nodes.has(block.node))
    const inUse = isLeft ? (await listKind(client, 'Pod', { signal })).found.flatMap(statedAddresses) : []
    const { blocks, goneSince } = abandonedBlocks({ blocks: all, nodes, inUse, goneSince: this.#goneSince, now: clock.now(), graceMs })
    this.#goneSince = goneSince
    for (const one of blocks) if (mayAct()) await this.#remove(one, signal)
  }

  async #remove({ object, block: { node } }: FoundBlock, signal: AbortSignal): Promise<void> {
    const { writer, log } = this.#options
    const { name, uid = '', resourceVersion = '' } = object.metadata
    try {
      await writer.delete(namedOf(object), { signal, preconditions: { uid, resourceVersion } })
    } catch (thrown) {
      // its node is back, or another has taken it
      if (isRefused(thrown, 'Conflict', 'NotFound')) return
      throw thrown
    }
    this.#collected++
    log.info({ block: name, node }, 'block.collected')
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Blocks as IPAMBlock objects of the API server; a node's NodeNetwork tells the others which are its.
 * Layer: agent/ipam. */
import { errorCode, InternalError, NotYetError } from '#lib/base/errors.ts'
import type { Cidr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { BLOCK_NODE_LABEL, blockName, blockNodeLabel, IP_BLOCK, ipBlockObject, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { NODE_NETWORK, nodeNetworkRaw } from '#lib/kube/objects/node-network.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import type { BlockStore, StoredBlock } from './block-store.ts'

/** Other pods wait meanwhile. */
const IN_TIME = { timeoutMs: 10_000 } as const

/** What we need of the API client. */
export type BlockApi = Pick<ApiClient, 'list' | 'create' | 'update' | 'delete' | 'patch'>

export interface ApiBlocksOptions {
  readonly api: BlockApi
  readonly node: string
  /** called for each block of another node that cannot be parsed */
  readonly unreadable: (error: unknown) => void
}

export class ApiBlocks implements BlockStore {
  readonly #api: BlockApi
  readonly #node: string
  readonly #unreadable: (error: unknown) => void

  constructor({ api, node, unreadable }: ApiBlocksOptions) {
    this.#api = api
    this.#node = node
    this.#unreadable = unreadable
  }

  async own(): Promise<readonly StoredBlock[]> {
    const objects = await this.#api.list(IP_BLOCK, {
      ...IN_TIME,
      labelSelector: `${BLOCK_NODE_LABEL}=${blockNodeLabel(this.#node)}`,
    })
    // names may share a label, and a label may be another's mistake
    return objects.filter(({ spec }) => isObject(spec) && spec['node'] === this.#node).map(stored)
  }

  async all(): Promise<readonly StoredBlock[]> {
    return (await this.#api.list(IP_BLOCK, IN_TIME)).flatMap((object) => {
      try {
        return [stored(object)]
      } catch (error) {
        // its name is taken all the same; its own node reports the fault to a runtime that adds a pod there
        this.#unreadable(error)
        return []
      }
    })
  }

  async create(block: IPBlock): Promise<StoredBlock | undefined> {
    return await this.#unless('AlreadyExists', async () => stored(await this.#api.create(objectOf(block), IN_TIME)))
  }

  async replace(before: StoredBlock, after: IPBlock): Promise<StoredBlock | undefined> {
    return await this.#unless('Conflict', async () => stored(await this.#api.update(objectOf(after, before.version), IN_TIME)))
  }

  async remove({ block, version }: StoredBlock): Promise<boolean> {
    const named = { ...IP_BLOCK, name: blockName(block.cidr) }
    const removed = await this.#unless('Conflict', async () => {
      await this.#api.delete(named, { ...IN_TIME, preconditions: { resourceVersion: version } })
      return true
    })
    return removed ?? false
  }

  async hasNode(name: string): Promise<boolean> {
    const named = await this.#api.list({ apiVersion: 'v1', kind: 'Node' }, { ...IN_TIME, fieldSelector: `metadata.name=${name}` })
    return named.length > 0
  }

  async announce(ranges: readonly Cidr[]): Promise<void> {
    const named = { ...NODE_NETWORK, name: this.#node }
    const patch = { spec: nodeNetworkRaw({ blocks: ranges }) }
    try {
      await this.#api.patch(named, patch, { ...IN_TIME, type: 'merge' })
    } catch (thrown) {
      if (!isRefused(thrown, 'NotFound')) throw thrown
      // of a node that starts, the status says what else there is to say, within a second
      if (ranges.length > 0) throw new NotYetError(`there is no NodeNetwork ${this.#node}: other nodes could not reach it`)
    }
  }

  /** An object that is gone is another one as well. */
  async #unless<T>(reason: 'AlreadyExists' | 'Conflict', call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call()
    } catch (thrown) {
      if (isRefused(thrown, reason, 'NotFound')) return undefined
      throw thrown
    }
  }
}

function objectOf(block: IPBlock, resourceVersion?: string): ApiObject {
  const { metadata, ...rest } = ipBlockObject(block)
  return asApiObject({ ...rest, metadata: { ...metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) } })
}

function stored(object: ApiObject): StoredBlock {
  const version = object.metadata.resourceVersion
  if (version === undefined) throw new InternalError(`IPAMBlock ${object.metadata.name} has no resourceVersion`)
  try {
    return { block: parseIPBlock({ ...object }), version }
  } catch (cause) {
    throw new InternalError(`IPAMBlock ${object.metadata.name} cannot be read (${errorCode(cause) ?? ''})`, cause)
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Blocks, pools, pods, nodes and what these tell each other, as the API server has them now. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import { listBlocks, listKind, type FoundBlock } from '#lib/api/listed.ts'
import type { AddressView } from './view.ts'

export interface ClusterAddresses {
  readonly view: AddressView
  /** those of the view, with their objects */
  readonly blocks: readonly FoundBlock[]
}

/** Blocks come first: a pod is there before it has an address, so none of a new pod looks leaked. */
export async function readAddresses(client: Pick<ApiClient, 'list'>): Promise<ClusterAddresses> {
  const blocks = await listBlocks(client)
  const [pods, nodes, pools, networks] = await Promise.all([
    listKind(client, 'Pod'),
    listKind(client, 'Node'),
    listKind(client, 'IPPool'),
    listKind(client, 'NodeNetwork'),
  ])
  const view = {
    blocks: blocks.found.map(({ block }) => block),
    pools: pools.found,
    pods: pods.found,
    nodes: nodes.found,
    networks: networks.found,
    unreadable: [blocks, pods, nodes, pools, networks].flatMap(({ unreadable }) => unreadable),
  }
  return { view, blocks: blocks.found }
}

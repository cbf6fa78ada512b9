// SPDX-License-Identifier: Apache-2.0
/** A cluster as objects tell it, and the owners of its addresses. Layer: cli (pure). */
import type { Addr } from '#lib/base/ip.ts'
import { hasOwnAddresses, type Pod } from '#lib/model/pod.ts'
import type { Node } from '#lib/model/node.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { peersOf, type Peers } from '#lib/policy/peers.ts'
import { Store } from '#lib/store/store.ts'
import type { SourceEvent } from '#lib/store/source.ts'
import { NodeView } from './node-view.ts'

/** The owner of an address. An address of no pod and no node is outside. */
export type Owner =
  | { readonly kind: 'pod'; readonly pod: Pod; readonly node: string | undefined }
  | { readonly kind: 'node'; readonly node: string }
  | { readonly kind: 'outside'; readonly node: undefined }

const OUTSIDE: Owner = { kind: 'outside', node: undefined }

export class ExplainedCluster {
  readonly snapshot: Snapshot
  readonly peers: Peers
  readonly #owners = new Map<Addr, Owner>()
  readonly #views = new Map<string, NodeView>()

  constructor(snapshot: Snapshot) {
    this.snapshot = snapshot
    this.peers = peersOf(snapshot)
    for (const node of snapshot.nodes.values()) for (const addr of node.addresses) this.#owners.set(addr, { kind: 'node', node: node.name })
    const pods = [...snapshot.pods.values()].filter(hasOwnAddresses)
    for (const pod of pods) for (const addr of pod.podIPs) this.#owners.set(addr, { kind: 'pod', pod, node: pod.nodeName })
  }

  owner(addr: Addr): Owner {
    return this.#owners.get(addr) ?? OUTSIDE
  }

  ownerText(addr: Addr): string {
    const owner = this.owner(addr)
    return owner.kind === 'pod' ? nameKey(owner.pod) : owner.kind === 'node' ? `node ${owner.node}` : 'outside'
  }

  /** What this node makes of the cluster; undefined: there is no such node, nor a pod on it. */
  view(node: string): NodeView {
    const known = this.#views.get(node) ?? new NodeView(node, this.snapshot)
    this.#views.set(node, known)
    return known
  }

  nodesInOrder(): readonly Node[] {
    return [...this.snapshot.nodes.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }
}

/** What these events come to; what the candidates say wins. */
export function clusterOf(events: readonly SourceEvent[], candidates: readonly SourceEvent[] = []): ExplainedCluster {
  const store = new Store({ sources: ['candidates', 'resources'] })
  store.sink('resources').apply(events)
  store.sink('candidates').apply(candidates)
  return new ExplainedCluster(store.snapshot)
}

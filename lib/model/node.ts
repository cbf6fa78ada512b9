// SPDX-License-Identifier: Apache-2.0
/** Nodes: their addresses and the ranges of their pods. Layer: lib/model. */
import { isV4 } from '../base/ip.ts'
import type { Addr, Cidr } from '../base/ip.ts'
import { deepEqual } from '../base/deep-equal.ts'
import type { Labels } from './labels.ts'
import type { Snapshot } from './snapshot.ts'

/** Who serves what is no pod's: the agent's programs, or kube-proxy. */
export type DataplaneMode = 'BPF' | 'Standard'

export interface Node {
  readonly kind: 'Node'
  readonly namespace: ''
  readonly name: string
  /** where other nodes reach it: InternalIPs, of a family without any ExternalIPs; each in the API's order */
  readonly addresses: readonly Addr[]
  readonly podCIDRs: readonly Cidr[]
  /** ranges that it has taken from pools for its pods, as its agent says; absent: none */
  readonly blocks?: readonly Cidr[]
  readonly zone: string | undefined
  readonly labels: Labels
  /** Prefixes in which it reaches other nodes without a router, as its agent says. Empty: it is not known. */
  readonly subnets: readonly Cidr[]
  /** another one's for each that is made; absent where the cluster's own word is not known */
  readonly uid?: string
  /** it is being deleted, or the cluster autoscaler is about to */
  readonly leaving?: true
  /** it has the taint by which pods wait for its agent */
  readonly awaitsAgent?: true
  /** it has agents of an older version: addresses of its end of the tunnel, as "66:00:5e:00:53:01" */
  readonly vteps?: Vteps
  /** known by its agent's word alone */
  readonly byAgent?: true
}

/** Hardware addresses of devices of the kernel, by the family inside. */
export interface Vteps {
  readonly v4: string | undefined
  readonly v6: string | undefined
}

/** A device of a node that is not a pod's, with the addresses by which it is reached. */
export interface NodeInterface {
  readonly name: string
  readonly addresses: readonly Addr[]
}

/** What other nodes have to know of one, as its agent says it. */
export interface NodeNetwork {
  readonly kind: 'NodeNetwork'
  readonly namespace: ''
  readonly name: string
  readonly addresses: readonly Addr[]
  readonly podCIDRs: readonly Cidr[]
  readonly blocks: readonly Cidr[]
  readonly subnets: readonly Cidr[]
  readonly labels: Labels
  /** those with addresses, sorted by name, for the controllers; absent: its agent is older than this field */
  readonly interfaces?: readonly NodeInterface[]
  /** see `Node`; absent: its programs take any frame of the tunnel */
  readonly vteps?: Vteps
  /** uid of the Node that this describes */
  readonly owner: string | undefined
}

/** A node as it is known here: the cluster's own word first, its agent's for what only that can say, and where the
 * cluster's is not asked for. */
export function nodeFrom(object: Node | undefined, network: NodeNetwork | undefined): Node | undefined {
  if (network === undefined) return object
  const { name, addresses, podCIDRs, labels, subnets, blocks, vteps } = network
  const known = object ?? { kind: 'Node', namespace: '', name, addresses, podCIDRs, labels, zone: undefined, byAgent: true }
  return { ...known, subnets, ...(blocks.length === 0 ? {} : { blocks }), ...(vteps && { vteps }) }
}

/** The node as the cluster itself has it. */
export function ownNode({ nodes }: Pick<Snapshot, 'nodes'>, name: string): Node | undefined {
  const node = nodes.get(name)
  return node?.byAgent === true ? undefined : node
}

/** Other nodes hear of the addresses and the range that it has now, be they none: a cloud's controller that says
 * them may wait for this node. */
export function isAnnounced(world: Pick<Snapshot, 'nodes' | 'nodeNetworks'>, name: string): boolean {
  const said = world.nodeNetworks.get(name)
  const own = ownNode(world, name)
  return said !== undefined && deepEqual([said.addresses, said.podCIDRs], [own?.addresses, own?.podCIDRs])
}

/** All ranges that its pods have addresses of. */
export function podRanges({ podCIDRs, blocks }: Pick<Node, 'podCIDRs' | 'blocks'>): readonly Cidr[] {
  return blocks === undefined ? podCIDRs : [...podCIDRs, ...blocks]
}

/** The first of the family: the address other nodes use for it. */
export function nodeAddress(node: Node, v4: boolean): Addr | undefined {
  return node.addresses.find((addr) => isV4(addr) === v4)
}

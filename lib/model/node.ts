// SPDX-License-Identifier: Apache-2.0
/** Nodes: their addresses and the ranges of their pods. Layer: lib/model. */
import { isV4 } from '../base/ip.ts'
import type { Addr, Cidr } from '../base/ip.ts'
import type { Labels } from './labels.ts'

export interface Node {
  readonly kind: 'Node'
  readonly namespace: ''
  readonly name: string
  /** InternalIP addresses, in the API's order */
  readonly addresses: readonly Addr[]
  readonly podCIDRs: readonly Cidr[]
  /** ranges that it has taken from pools for its pods, as its agent has announced; absent: none */
  readonly blocks?: readonly Cidr[]
  readonly zone: string | undefined
  readonly labels: Labels
  /** Prefixes in which it reaches other nodes without a router. Empty: it is not known. */
  readonly subnets: readonly Cidr[]
  /** it is being deleted, or the cluster autoscaler is about to */
  readonly leaving?: true
}

/** Where a node's agent announces the blocks that it has taken: "10.0.1.0/26,fd00::40/122". */
export const BLOCKS_ANNOTATION = 'netplane.io/blocks'

/** Where a node's agent announces `subnets`: "192.0.2.0/24,fd00::/64". */
export const SUBNETS_ANNOTATION = 'netplane.io/subnets'

/** All ranges that its pods have addresses of. */
export function podRanges({ podCIDRs, blocks }: Pick<Node, 'podCIDRs' | 'blocks'>): readonly Cidr[] {
  return blocks === undefined ? podCIDRs : [...podCIDRs, ...blocks]
}

/** The first InternalIP of the family: the address other nodes use for it. */
export function nodeAddress(node: Node, v4: boolean): Addr | undefined {
  return node.addresses.find((addr) => isV4(addr) === v4)
}

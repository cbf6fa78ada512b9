// SPDX-License-Identifier: Apache-2.0
/** Ranges that pods' addresses come from, and how the network outside treats them. Layer: lib/model. */
import type { Cidr } from '../base/ip.ts'
import type { Selector } from './selector/selector.ts'

export interface IPPool {
  readonly kind: 'IPPool'
  readonly namespace: ''
  readonly name: string
  readonly cidr: Cidr
  /** flows of its pods to the outside leave with their node's address */
  readonly natOutgoing: boolean
  /** whether packets between nodes travel in the tunnel: to nodes beyond a router only, or to all */
  readonly overlay: 'Never' | 'CrossSubnet' | 'Always'
  /** prefix length of the blocks that nodes take */
  readonly blockBits: number
  /** pods that may have addresses of it: none, those that ask for it by name, all */
  readonly assigns: 'none' | 'asked' | 'all'
  /** labels of the nodes that may take blocks */
  readonly nodes: Selector
  /** labels of the namespaces whose pods may have addresses */
  readonly namespaces: Selector
}

// SPDX-License-Identifier: Apache-2.0
/** NodeNetwork objects, both ways: what nodes tell each other through the API server. Layer: lib/kube. */
import { formatAddr, formatCidr } from '../base/ip.ts'
import type { NodeNetwork } from '../model/node.ts'
import { inside } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { labelsOf } from './labels.ts'
import { listed, object } from './shape.ts'
import { address, cidr } from './shapes.ts'

export const NODE_NETWORK = { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork' } as const

/** A node has few of these. */
const FEW = 16
/** A node takes another block when it has more pods than addresses. */
const MANY = 4096

export const nodeNetworkSpec = object({
  addresses: listed('Where other nodes reach it, the first of each family before others: the InternalIPs of the Node.', address, {
    most: FEW,
  }),
  podCIDRs: listed('Ranges that the cluster has given to it for its pods.', cidr, { most: FEW }),
  blocks: listed('Ranges that it has taken from pools for its pods.', cidr, { most: MANY }),
  subnets: listed('Prefixes in which it reaches other nodes without a router.', cidr, { most: FEW }),
})

/** Its labels are those of the Node. */
export function parseNodeNetwork(input: ParseInput): NodeNetwork {
  const spec = inside(input.raw, 'spec', nodeNetworkSpec.read)
  return { kind: 'NodeNetwork', namespace: '', name: input.name, ...spec, labels: labelsOf(input) }
}

/** As spec; what is not given is left out. */
export function nodeNetworkRaw({ addresses, podCIDRs, blocks, subnets }: Partial<NodeNetwork>): Raw {
  return {
    ...(addresses && { addresses: addresses.map(formatAddr) }),
    ...(podCIDRs && { podCIDRs: podCIDRs.map(formatCidr) }),
    ...(blocks && { blocks: blocks.map(formatCidr) }),
    ...(subnets && { subnets: subnets.map(formatCidr) }),
  }
}

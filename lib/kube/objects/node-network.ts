// SPDX-License-Identifier: Apache-2.0
/** NodeNetwork objects, both ways: what nodes tell each other through the API server. Layer: lib/kube. */
import { formatAddr, formatCidr } from '../../base/ip.ts'
import type { Cidr } from '../../base/ip.ts'
import { compareText } from '../../base/order.ts'
import type { NodeNetwork } from '../../model/node.ts'
import { asRecord, each, inside, text, usable } from '../parse/fields.ts'
import type { ParseInput, Raw } from '../parse/fields.ts'
import { labelMap } from '../parse/labels.ts'
import { fieldOr, listed, object } from '../schema/shape.ts'
import { cidr, texts } from '../schema/primitives.ts'
import { reachable } from '../parse/special-addresses.ts'

export const NODE_NETWORK = { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork' } as const

/** Some clouds give a node an address for each of its pods. */
const MANY = 1024
/** A node takes another block when it has more pods than addresses. */
const BLOCKS = 4096

export const nodeNetworkSpec = object({
  addresses: listed(
    'Where other nodes reach it, the first of each family before others: the InternalIPs of the Node, of a family without any its ExternalIPs.',
    reachable,
    { most: MANY },
  ),
  podCIDRs: listed('Ranges that the cluster has given to it for its pods.', cidr, { most: MANY }),
  blocks: listed('Ranges that it has taken from pools for its pods.', cidr, { most: BLOCKS }),
  subnets: listed('Prefixes in which it reaches other nodes without a router.', cidr, { most: MANY }),
  labels: fieldOr<Raw, Raw>({}, 'Those of the Node.', texts),
})

/** What agents of other versions say besides is theirs. */
export function parseNodeNetwork(input: ParseInput): NodeNetwork {
  const spec = inside(input.raw, 'spec', (raw) => ({
    addresses: usable(raw, 'addresses', {
      read: reachable.read,
      refuse: (error) => {
        input.refuse(error.under('spec'))
      },
    }),
    podCIDRs: nodeNetworkSpec.at(raw, 'podCIDRs'),
    blocks: nodeNetworkSpec.at(raw, 'blocks'),
    subnets: nodeNetworkSpec.at(raw, 'subnets'),
    labels: labelMap(nodeNetworkSpec.at(raw, 'labels'), input),
  }))
  return { kind: 'NodeNetwork', namespace: '', name: input.name, ...spec, owner: ownerOf(input.raw) }
}

function ownerOf(raw: Raw): string | undefined {
  const owners = inside(raw, 'metadata', (metadata) => each(metadata, 'ownerReferences', asRecord))
  const node = owners.find((owner) => text(owner, 'kind') === 'Node')
  return node && text(node, 'uid')
}

/** As spec; what is not given is left out. */
export function nodeNetworkRaw({ addresses, podCIDRs, blocks, subnets, labels }: Partial<NodeNetwork>) {
  return {
    ...(addresses && { addresses: addresses.map(formatAddr) }),
    ...(podCIDRs && { podCIDRs: podCIDRs.map(formatCidr) }),
    ...(blocks && { blocks: sortedCidrs(blocks).map(formatCidr) }),
    ...(subnets && { subnets: subnets.map(formatCidr) }),
    ...(labels && { labels: Object.fromEntries(labels) }),
  }
}

/** By their texts, each once: another order would be a changed object to every watch. */
export function sortedCidrs(cidrs: readonly Cidr[]): readonly Cidr[] {
  const byText = new Map(cidrs.map((one) => [formatCidr(one), one]))
  return [...byText].sort(([a], [b]) => compareText(a, b)).map(([, one]) => one)
}

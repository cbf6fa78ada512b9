// SPDX-License-Identifier: Apache-2.0
/** NodeNetwork objects, both ways: what nodes tell each other through the API server. Layer: lib/kube. */
import { formatAddr, formatCidr } from '../../base/ip.ts'
import type { Cidr } from '../../base/ip.ts'
import { compareText } from '../../base/order.ts'
import type { NodeInterface, NodeNetwork, Vteps } from '../../model/node.ts'
import { asRecord, each, inside, own, text, usable } from '../parse/fields.ts'
import type { ParseInput, Raw } from '../parse/fields.ts'
import { labelMap } from '../parse/labels.ts'
import { field, fieldOr, listed, object, required } from '../schema/shape.ts'
import { address, cidr, macAddress, name, texts } from '../schema/primitives.ts'
import { reachable } from '../parse/special-addresses.ts'

export const NODE_NETWORK = { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork' } as const

/** Some clouds give a node an address for each of its pods. */
const MANY = 1024
/** A node takes another block when it has more pods than addresses. */
const BLOCKS = 4096
const INTERFACES = 256

const nodeInterface = object({
  name: required('Its name.', name),
  addresses: listed('By which it is reached.', address, { most: MANY }),
})

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
  interfaces: listed("Its devices with addresses, but for pods': what automatic host endpoints are made of.", nodeInterface, {
    most: INTERFACES,
  }),
  vxlanTunnelMACAddr: field('What a node of an older version takes frames of the tunnel for.', macAddress),
  vxlanTunnelMACAddrV6: field('The same of packets of IPv6.', macAddress),
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
    ...interfacesOf(raw),
    ...vtepsOf(raw),
  }))
  return { kind: 'NodeNetwork', namespace: '', name: input.name, ...spec, owner: ownerOf(input.raw) }
}

/** An agent without the field is unlike one without such devices. */
function interfacesOf(raw: Raw): { readonly interfaces?: readonly NodeInterface[] } {
  return own(raw, 'interfaces') === undefined ? {} : { interfaces: nodeNetworkSpec.at(raw, 'interfaces') }
}

function vtepsOf(raw: Raw): { readonly vteps?: Vteps } {
  const vteps = { v4: nodeNetworkSpec.at(raw, 'vxlanTunnelMACAddr'), v6: nodeNetworkSpec.at(raw, 'vxlanTunnelMACAddrV6') }
  return vteps.v4 === undefined && vteps.v6 === undefined ? {} : { vteps }
}

function ownerOf(raw: Raw): string | undefined {
  const owners = inside(raw, 'metadata', (metadata) => each(metadata, 'ownerReferences', asRecord))
  const node = owners.find((owner) => text(owner, 'kind') === 'Node')
  return node && text(node, 'uid')
}

/** As spec; what is not given is left out. */
export function nodeNetworkRaw({ addresses, podCIDRs, blocks, subnets, labels, interfaces, vteps }: Partial<NodeNetwork>) {
  return {
    ...(addresses && { addresses: addresses.map(formatAddr) }),
    ...(podCIDRs && { podCIDRs: podCIDRs.map(formatCidr) }),
    ...(blocks && { blocks: sortedCidrs(blocks).map(formatCidr) }),
    ...(subnets && { subnets: subnets.map(formatCidr) }),
    ...(labels && { labels: Object.fromEntries(labels) }),
    ...(interfaces && { interfaces: interfaces.map((one) => ({ name: one.name, addresses: one.addresses.map(formatAddr) })) }),
    ...(vteps?.v4 !== undefined && { vxlanTunnelMACAddr: vteps.v4 }),
    ...(vteps?.v6 !== undefined && { vxlanTunnelMACAddrV6: vteps.v6 }),
  }
}

/** By their texts, each once: another order would be a changed object to every watch. */
export function sortedCidrs(cidrs: readonly Cidr[]): readonly Cidr[] {
  const byText = new Map(cidrs.map((one) => [formatCidr(one), one]))
  return [...byText].sort(([a], [b]) => compareText(a, b)).map(([, one]) => one)
}

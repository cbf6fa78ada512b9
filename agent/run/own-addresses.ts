// SPDX-License-Identifier: Apache-2.0
/** Which addresses this node's own object lacks, and what would need them. Layer: agent (pure). */
import { formatCidr, isV4, type Addr } from '#lib/base/ip.ts'
import { nodeAddress, podRanges, type Node } from '#lib/model/node.ts'
import { nameKey } from '#lib/model/ref.ts'
import { selects } from '#lib/model/selector/selector.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { isLocalWorkload } from '../compile/addresses.ts'

const NO_ADDRESS = 'the Node has neither an InternalIP nor an ExternalIP: it has no tunnel, and its pods do not leave as the node'

/** Why the node has no address; undefined: it has one. */
export function missingAddress(node: Node): string | undefined {
  return node.addresses.length === 0 ? NO_ADDRESS : undefined
}

/** Why addresses of one family are not enough; undefined: they are, or there is none at all. */
export function missingFamily(node: Node, world: Pick<Snapshot, 'pools' | 'podsOn'>): string | undefined {
  if (node.addresses.length === 0) return undefined
  const missing = [true, false].find((v4) => nodeAddress(node, v4) === undefined)
  if (missing === undefined) return undefined
  const user = userOf(missing, { node, world })
  const family = missing ? 'IPv4' : 'IPv6'
  return user && `the Node has no ${family} address, but ${user}: its pods reach no other node by ${family}, and do not leave as the node`
}

interface Users {
  readonly node: Node
  readonly world: Pick<Snapshot, 'pools' | 'podsOn'>
}

/** What gives the node's pods addresses of the family; undefined: nothing does. */
function userOf(v4: boolean, { node, world }: Users): string | undefined {
  const isOf = (addr: Addr): boolean => isV4(addr) === v4
  const range = podRanges(node).find(({ addr }) => isOf(addr))
  if (range !== undefined) return `${formatCidr(range)} is a range of its pods`
  for (const { name, cidr, assigns, nodes } of world.pools.values()) {
    if (assigns !== 'none' && isOf(cidr.addr) && selects(nodes, node.labels)) return `IPPool ${name} is for its pods`
  }
  for (const pod of world.podsOn(node.name)) {
    if (isLocalWorkload(pod, node.name) && pod.podIPs.some(isOf)) return `pod ${nameKey(pod)} has one`
  }
  return undefined
}

// SPDX-License-Identifier: Apache-2.0
/** Pools of pods' addresses: who is masqueraded, and which nodes are reached in the tunnel. Layer: agent/compile (pure). */
import { cidrContains, isV4, isWithin } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import { nodeAddress } from '#lib/model/node.ts'
import type { Node } from '#lib/model/node.ts'

/** By name of the pool. */
export type Pools = ReadonlyMap<string, IPPool>

/** Whether a pod's flows to the outside leave with its node's address. */
export function isMasqueraded(pools: Pools, addr: Addr): boolean {
  return [...pools.values()].some(({ natOutgoing, cidr }) => natOutgoing && cidrContains(cidr, addr))
}

export interface OtherNode {
  readonly node: Node
  /** this node; undefined when it is not known */
  readonly self: Node | undefined
}

/** The address to which packets for this range of the other node go in the tunnel; undefined when the network between the nodes takes them. */
export function overlayAddress(pools: Pools, range: Cidr, { node, self }: OtherNode): Addr | undefined {
  const v4 = isV4(range.addr)
  const pool = closestPool(pools, range)
  const address = nodeAddress(node, v4)
  if (pool === undefined || pool.overlay === 'Never' || address === undefined) return undefined
  // without knowing our subnets the tunnel is the way that always works
  return pool.overlay === 'CrossSubnet' && isWithin(self?.subnets ?? [], address) ? undefined : address
}

/** The smallest pool that has the whole range; of equal ones the first name's. */
function closestPool(pools: Pools, range: Cidr): IPPool | undefined {
  const around = [...pools.values()].filter(({ cidr }) => cidr.bits <= range.bits && cidrContains(cidr, range.addr))
  return around.sort((a, b) => b.cidr.bits - a.cidr.bits || compareText(a.name, b.name))[0]
}

/** Whether there may be ranges that are reached in the tunnel. */
export function hasOverlay(pools: Pools): boolean {
  return [...pools.values()].some(({ overlay }) => overlay !== 'Never')
}

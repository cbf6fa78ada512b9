// SPDX-License-Identifier: Apache-2.0
/** Pools of pods' addresses: which pods are masqueraded, and which nodes are reached in the tunnel.
 * Layer: agent/compile (pure). */
import { cidrContains, isV4, isWithin, parseCidr } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import { nodeAddress, podRanges } from '#lib/model/node.ts'
import type { Node } from '#lib/model/node.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'

export type Pool = Pick<IPPool, 'name' | 'cidr' | 'natOutgoing' | 'overlay'>

/** By name of the pool. */
export type Pools = ReadonlyMap<string, Pool>

/** Pods whose addresses are of their nodes' own ranges reach the world and each other as if one pool had all of
 * these. */
const UNPOOLED: readonly Pool[] = ['0.0.0.0/0', '::/0'].map((name) => ({
  name,
  cidr: parseCidr(name),
  natOutgoing: true,
  overlay: 'CrossSubnet',
}))

export interface PoolsInput {
  readonly snapshot: Pick<Snapshot, 'pools' | 'nodes'>
  /** this node's name */
  readonly node: string
  /** our own plugin gives the cluster's pods their addresses: where there is no pool of a family, of their nodes'
   * ranges */
  readonly servesPods?: boolean | undefined
}

export function poolsIn({ snapshot: { pools, nodes }, node, servesPods = false }: PoolsInput): Pools {
  if (!servesPods) return pools
  const hasPool = new Set([...pools.values()].map(({ cidr }) => isV4(cidr.addr)))
  const hasRange = new Set(nodes.get(node)?.podCIDRs.map(({ addr }) => isV4(addr)))
  const unpooled = UNPOOLED.filter(({ cidr: { addr } }) => hasRange.has(isV4(addr)) && !hasPool.has(isV4(addr)))
  return unpooled.length === 0 ? pools : new Map([...pools, ...unpooled.map((pool) => [pool.name, pool] as const)])
}

/** The node's own ranges that no pool stands for: packets to them are not masqueraded. */
export function rangesInside(pools: Pools, node: Pick<Node, 'podCIDRs' | 'blocks'>): readonly Cidr[] {
  const isUnpooled = ({ addr }: Cidr): boolean =>
    UNPOOLED.some((pool) => pools.get(pool.name) === pool && isV4(pool.cidr.addr) === isV4(addr))
  return podRanges(node).filter(isUnpooled)
}

export interface PodPools {
  readonly pools: Pools
  /** this node */
  readonly self: Node | undefined
}

/** Whether a pod's flows to the outside leave with its node's address. */
export function isMasqueraded({ pools, self }: PodPools, addr: Addr): boolean {
  const pool = [...pools.values()].find(({ natOutgoing, cidr }) => natOutgoing && cidrContains(cidr, addr))
  if (pool === undefined || !UNPOOLED.includes(pool)) return pool !== undefined
  return self !== undefined && isWithin(podRanges(self), addr)
}

export interface OtherNode {
  readonly node: Node
  /** this node; undefined when it is not known */
  readonly self: Node | undefined
}

/** The address to which packets for this range of the other node go in the tunnel; undefined when the network
 * between the nodes takes them. */
export function overlayAddress(pools: Pools, range: Cidr, { node, self }: OtherNode): Addr | undefined {
  const v4 = isV4(range.addr)
  const pool = closestPool(pools, range)
  const address = nodeAddress(node, v4)
  if (pool === undefined || pool.overlay === 'Never' || address === undefined) return undefined
  // our agent announces our subnets; until then the tunnel is the way that always works
  return pool.overlay === 'CrossSubnet' && isWithin(self?.subnets ?? [], address) ? undefined : address
}

/** The smallest pool that has the whole range; of equal ones the first name's. */
function closestPool(pools: Pools, range: Cidr): Pool | undefined {
  const around = [...pools.values()].filter(({ cidr }) => cidr.bits <= range.bits && cidrContains(cidr, range.addr))
  return around.sort((a, b) => b.cidr.bits - a.cidr.bits || compareText(a.name, b.name))[0]
}

/** Whether there may be ranges that are reached in the tunnel. */
export function hasOverlay(pools: Pools): boolean {
  return [...pools.values()].some(({ overlay }) => overlay !== 'Never')
}

// SPDX-License-Identifier: Apache-2.0
/** Where the addresses of a new pod are to come from, by what the cluster says. Layer: lib/ipam (pure). */
import { AddressError } from '../base/errors.ts'
import { cidrContains, isV4, maskAddr } from '../base/ip.ts'
import type { Addr, Cidr } from '../base/ip.ts'
import type { IPBlock } from '../model/ip-block.ts'
import type { IPPool } from '../model/ip-pool.ts'
import { ownNode, podRanges } from '../model/node.ts'
import { statedAddresses } from '../model/pod.ts'
import type { Pod } from '../model/pod.ts'
import { nameKey, refText } from '../model/ref.ts'
import type { Family } from '../model/service.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { choosePools, poolOfFixed } from './choose-pools.ts'
import { readIpAnnotations } from './ip-annotations.ts'

/** Of one address. */
export type AddressPlan =
  | { readonly kind: 'fixed'; readonly addr: Addr; readonly pool: IPPool; readonly ref: string }
  /** one of these pools, in this order */
  | { readonly kind: 'pools'; readonly pools: readonly IPPool[]; readonly ref: string }
  /** the range that the cluster has given to the node */
  | { readonly kind: 'range'; readonly range: Cidr; readonly ref: string }

type World = Pick<Snapshot, 'pools' | 'nodes' | 'namespaces' | 'podsOn'>

/** The same where all addresses are to be of the nodes' own ranges. */
export function withoutPools(world: World): World {
  const { nodes, namespaces } = world
  return { pools: new Map(), nodes, namespaces, podsOn: (node) => world.podsOn(node) }
}

const FAMILIES: readonly Family[] = ['IPv4', 'IPv6']

/** One for each family that the pod is to have, at least one. Throws AddressError. */
export function planAddresses(pod: Pod, world: World, nodeName: string): readonly AddressPlan[] {
  const ref = refText(pod)
  const node = ownNode(world, nodeName)
  if (node === undefined) throw new AddressError({ ref: `Node/${nodeName}`, reason: 'is not known' })
  const namespace = world.namespaces.get(pod.namespace)
  const wishes = readIpAnnotations(pod, namespace)
  const query = { pools: [...world.pools.values()], node, namespace }
  const plans = FAMILIES.flatMap((family): AddressPlan[] => {
    const fixed = wishes.fixed.find((addr) => isV4(addr) === (family === 'IPv4'))
    if (fixed !== undefined) return [{ kind: 'fixed', addr: fixed, pool: poolOfFixed(fixed, { query, ref }), ref }]
    const pools = choosePools({ ...query, family }, wishes.pools[family])
    if (pools !== undefined) return [{ kind: 'pools', pools, ref }]
    const range = node.podCIDRs.find(({ addr }) => isV4(addr) === (family === 'IPv4'))
    return range === undefined ? [] : [{ kind: 'range', range, ref }]
  })
  if (plans.length === 0)
    throw new AddressError({ ref: `Node/${nodeName}`, path: 'spec.podCIDRs', reason: 'is empty, and there is no IPPool for this pod' })
  return plans
}

/** Addresses of this node's pods whatever blocks say of them: those of a time before these blocks, say. `but`: what
 * it had may be its own again. */
export function addressesInUse(world: World, nodeName: string, but?: Pick<Pod, 'namespace' | 'name'>): ReadonlySet<Addr> {
  const pods = [...world.podsOn(nodeName)].filter((pod) => but === undefined || nameKey(pod) !== nameKey(but))
  return new Set(pods.flatMap(statedAddresses))
}

/** Ranges that other nodes have: what they have announced, for the names of blocks tell only those of one size
 * apart. `isAlone`: no store says which blocks are taken, and what the cluster has given to others is left to them
 * as well. */
export function rangesElsewhere({ nodes }: Pick<World, 'nodes'>, nodeName: string, isAlone: boolean): readonly Cidr[] {
  const others = [...nodes.values()].filter(({ name }) => name !== nodeName)
  return others.flatMap((node) => (isAlone ? podRanges(node) : (node.blocks ?? [])))
}

/** Whether pods of other nodes have addresses of a range, which may be older than the pool that it is a block of. */
export function inhabitedElsewhere({ pods }: Pick<Snapshot, 'pods'>, nodeName: string): (range: Cidr) => boolean {
  /** first addresses of the ranges of one length that have any */
  const byBits = new Map<number, ReadonlySet<Addr>>()
  const inhabited = (bits: number): ReadonlySet<Addr> => {
    const others = [...pods.values()].filter((pod) => pod.nodeName !== nodeName)
    return new Set(others.flatMap((pod) => statedAddresses(pod).map((addr) => maskAddr(addr, bits))))
  }
  return ({ addr, bits }) => {
    const known = byBits.get(bits) ?? inhabited(bits)
    byBits.set(bits, known)
    return known.has(addr)
  }
}

/** Its node is gone from the cluster, and no pod that is left has an address of it. */
export function isAbandoned(block: IPBlock, world: Pick<Snapshot, 'nodes' | 'pods'>): boolean {
  if (world.nodes.has(block.node)) return false
  for (const pod of world.pods.values()) if (statedAddresses(pod).some((addr) => cidrContains(block.cidr, addr))) return false
  return true
}

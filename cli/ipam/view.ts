// SPDX-License-Identifier: Apache-2.0
/** What the cluster says of addresses: blocks, pools, pods and nodes. Layer: cli (pure). */
import { cidrContains, isV4, maskAddr, type Addr } from '#lib/base/ip.ts'
import { addrAt } from '#lib/base/range.ts'
import type { Rejected } from '#lib/base/result.ts'
import type { Holder, IPBlock } from '#lib/model/ip-block.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { Node, NodeNetwork } from '#lib/model/node.ts'
import { statedAddresses, type Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'

export interface AddressView {
  readonly blocks: readonly IPBlock[]
  readonly pools: readonly Pick<IPPool, 'name' | 'cidr'>[]
  /** those that have a node and are not finished */
  readonly pods: readonly Pod[]
  readonly nodes: readonly Node[]
  /** what nodes tell each other */
  readonly networks: readonly NodeNetwork[]
  readonly unreadable: readonly Rejected[]
}

/** An address that a block has given away. */
export interface Held {
  readonly addr: Addr
  readonly block: IPBlock
  readonly holder: Holder
}

export function heldAddresses(blocks: readonly IPBlock[]): readonly Held[] {
  return blocks.flatMap((block) => [...block.held].map(([index, holder]) => ({ addr: addrAt(block.cidr, index), block, holder })))
}

/** Pods by the addresses that they have. */
export function podsByAddress(pods: readonly Pod[]): ReadonlyMap<Addr, readonly Pod[]> {
  const stated = pods.flatMap((pod) => statedAddresses(pod).map((addr) => ({ addr, pod })))
  const grouped = Map.groupBy(stated, ({ addr }) => addr)
  return new Map([...grouped].map(([addr, all]) => [addr, all.map(({ pod }) => pod)]))
}

/** The smallest pool that has the address. */
export function poolOf<P extends Pick<IPPool, 'cidr'>>(pools: readonly P[], addr: Addr): P | undefined {
  return pools.filter(({ cidr }) => cidrContains(cidr, addr)).sort((a, b) => b.cidr.bits - a.cidr.bits)[0]
}

/** Asks for the block that has an address; of several the smallest. */
export function blockFinder(blocks: readonly IPBlock[]): (addr: Addr) => IPBlock | undefined {
  // a cluster has many thousands of blocks, and few lengths of them
  const key = (addr: Addr, bits: number): string => `${maskAddr(addr, bits)}/${bits}`
  const byStart = new Map(blocks.map((block) => [key(block.cidr.addr, block.cidr.bits), block]))
  const lengths = (v4: boolean): readonly number[] =>
    [...new Set(blocks.filter(({ cidr }) => isV4(cidr.addr) === v4).map(({ cidr }) => cidr.bits))].sort((a, b) => b - a)
  const [v4, v6] = [lengths(true), lengths(false)]
  return (addr) => {
    for (const bits of isV4(addr) ? v4 : v6) {
      const block = byStart.get(key(addr, bits))
      if (block !== undefined) return block
    }
    return undefined
  }
}

export interface Borrowed {
  readonly addr: Addr
  readonly block: IPBlock
  readonly pod: Pod
}

/** Addresses of pods that run on another node than the one whose block has them. */
export function borrowedAddresses({ blocks, pods }: Pick<AddressView, 'blocks' | 'pods'>): readonly Borrowed[] {
  const blockOf = blockFinder(blocks)
  return pods.flatMap((pod) =>
    statedAddresses(pod).flatMap((addr) => {
      const block = blockOf(addr)
      return block === undefined || block.node === pod.nodeName ? [] : [{ addr, block, pod }]
    }),
  )
}

/** Asks whether an address still has a use: its pod is there on the block's node, or some pod has the address. */
export function useFinder(pods: readonly Pod[]): (held: Held) => Pod | undefined {
  const byAddress = podsByAddress(pods)
  const byName = new Map(pods.map((pod) => [nameKey(pod), pod]))
  return ({ addr, block, holder }) => {
    const [stated] = byAddress.get(addr) ?? []
    const named = byName.get(holderName(holder))
    return stated ?? (named?.nodeName === block.node ? named : undefined)
  }
}

/** "shop/web" */
export function holderName({ namespace, pod }: Holder): string {
  return nameKey({ namespace, name: pod })
}

// SPDX-License-Identifier: Apache-2.0
/** A cluster's addresses for tests: blocks that its nodes share, and a time of its own. Layer: test. */
import { formatAddr, formatCidr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { AddressPlan } from '#lib/ipam/plan.ts'
import { ALL } from '#lib/model/selector/selector.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import { Ipam, type AddressRequest } from '#agent/ipam/ipam.ts'
import { MemoryBlocks, type Fate } from './fakes/memory-blocks.ts'

export const REST_MS = 1000

export function poolOf(cidr: string, blockBits: number, name = 'p'): IPPool {
  const range = parseCidr(cidr)
  const rest = { natOutgoing: false, overlay: 'Never', assigns: 'all', nodes: ALL, namespaces: ALL } as const
  return { kind: 'IPPool', namespace: '', name, cidr: range, blockBits, ...rest }
}

export const FOUR = poolOf('10.0.0.0/28', 30)
export const SIX = poolOf('fd00::/124', 126)

export class World {
  readonly shared = new MemoryBlocks()
  readonly local = new MemoryBlocks()
  now = 0

  ipam(node: string, fate?: () => Fate): Ipam {
    const [shared, local] = [this.shared.store(node, fate), this.local.store(node, fate)]
    return new Ipam({ node, shared, local, now: () => this.now, restMs: REST_MS })
  }

  /** "pod address" of all that are held, in any block */
  held(): string[] {
    return [...this.shared.blocks.values(), ...this.local.blocks.values()].flatMap(({ block }) =>
      [...block.held].map(([index, { pod }]) => `${pod} ${formatCidr(block.cidr)}+${index}`),
    )
  }
}

export function pools(...of: readonly IPPool[]): AddressPlan[] {
  return of.map((pool) => ({ kind: 'pools', pools: [pool], ref: 'Pod/default/web' }))
}

/** 10.7.0.0 is in use whatever blocks say. */
export function request(pod: string, plans: readonly AddressPlan[], containerId = `${pod}-1`): AddressRequest {
  return {
    holder: { namespace: 'default', pod, containerId },
    plans,
    inUse: new Set([parseAddr('10.7.0.0')]),
    elsewhere: [],
    isInhabited: () => false,
    isAbandoned: ({ node }) => node === 'gone',
    isWanted: () => true,
  }
}

export async function give(ipam: Ipam, pod: string, plans: readonly AddressPlan[]): Promise<string> {
  return (await ipam.assign(request(pod, plans))).map(formatAddr).join(' ')
}

export async function take(ipam: Ipam, ...pods: readonly string[]): Promise<number> {
  return await ipam.release(({ pod }) => pods.includes(pod))
}

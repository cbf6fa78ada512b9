// SPDX-License-Identifier: Apache-2.0
/** A packet → what the tables of one node say of it. Layer: agent. */
import type { Addr } from '#lib/base/ip.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { PolicyLookup } from './tables.ts'
import { identityOf, walk } from './walk.ts'
import type { PolicyVerdict } from './walk.ts'

export interface Side {
  /** as the endpoint sees it */
  readonly direction: 'ingress' | 'egress'
  readonly staged?: boolean
}

/** By the rules of the packet's destination (ingress) or source (egress), which is an endpoint of the tables' node. */
export function judgeByTables(tables: PolicyLookup, packet: Packet, { direction, staged = false }: Side): PolicyVerdict {
  const [own, peer]: readonly [Addr, Addr] = direction === 'ingress' ? [packet.dst, packet.src] : [packet.src, packet.dst]
  const end = tables.end(own)
  if (end === undefined) return { action: 'allow', rule: undefined, passed: [] }
  const sets = staged ? { ingress: end.stagedIngress, egress: end.stagedEgress } : end
  return walk(tables, {
    set: sets[direction],
    peer: identityOf(tables, peer),
    own: identityOf(tables, own),
    proto: packet.protocol,
    port: packet.icmp === undefined ? packet.dport : packet.icmp.type * 256 + packet.icmp.code,
    sourcePort: packet.sport,
  })
}

// SPDX-License-Identifier: Apache-2.0
/** A packet → what the tables of one node say of it. Layer: agent. */
import type { Addr } from '#lib/base/ip.ts'
import type { Direction } from '#lib/model/policy.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { HostValue, SetId } from '#agent/compile/policy/tables.ts'
import { STAGE_SLOTS, type StageQuery } from './host-stages.ts'
import type { PolicyLookup } from './table-rows.ts'
import { identityOf, walk } from './verdict.ts'
import type { PolicyVerdict } from './verdict.ts'

export interface Side {
  /** as the endpoint sees it */
  readonly direction: Direction
  readonly staged?: boolean
}

/** By the rules of the packet's destination (ingress) or source (egress), which is an endpoint of the tables' node. */
export function judgeByTables(tables: PolicyLookup, packet: Packet, { direction, staged = false }: Side): PolicyVerdict {
  const end = tables.end(direction === 'ingress' ? packet.dst : packet.src)
  if (end === undefined) return { action: 'allow', rule: undefined, passed: [] }
  const sets = staged ? { ingress: end.stagedIngress, egress: end.stagedEgress } : end
  return judgeBySet(tables, sets[direction], { packet, direction })
}

/** What passes an interface that a host endpoint means. */
export interface HostPassing extends Side {
  readonly packet: Packet
  /** as it was before a service was translated */
  readonly before: Packet
  /** the host itself sends or receives it */
  readonly ofHost: boolean
}

/** By untracked rules alone. */
export function judgeUntracked(tables: PolicyLookup, host: HostValue, of: Side & { readonly packet: Packet }): PolicyVerdict {
  const verdict = judgeStage(tables, host, { ...of, stage: 'untracked' })
  return verdict.rule === undefined && verdict.action === 'allow' ? OPEN : verdict
}

/** By the rules after the untracked ones; without a verdict the packet is allowed. */
export function judgeHost(tables: PolicyLookup, host: HostValue, of: HostPassing): PolicyVerdict {
  const early = judgeStage(tables, host, { ...of, stage: 'early', packet: of.before })
  if (early.action !== 'open' && early.rule !== undefined) return early
  const late = judgeStage(tables, host, { ...of, stage: of.ofHost ? 'normal' : 'forward' })
  return late.action === 'open' ? { ...late, action: 'allow' } : late
}

function judgeStage(tables: PolicyLookup, host: HostValue, of: Side & StageQuery): PolicyVerdict {
  const slot = STAGE_SLOTS[of.stage][of.direction]
  return slot === undefined ? OPEN : judgeBySet(tables, (of.staged === true ? host.staged : host.sets)[slot], of)
}

const OPEN: PolicyVerdict = { action: 'open', rule: undefined, passed: [] }

/** By one set alone, of the endpoint whose direction it is. */
export function judgeBySet(
  tables: PolicyLookup,
  set: SetId,
  { packet, direction }: { readonly packet: Packet; readonly direction: Side['direction'] },
): PolicyVerdict {
  const [own, peer]: readonly [Addr, Addr] = direction === 'ingress' ? [packet.dst, packet.src] : [packet.src, packet.dst]
  return walk(tables, {
    set,
    peer: identityOf(tables, peer),
    own: identityOf(tables, own),
    proto: packet.protocol,
    port: packet.icmp === undefined ? packet.dport : packet.icmp.type * 256 + packet.icmp.code,
    sourcePort: packet.sport,
  })
}

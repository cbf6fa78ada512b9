// SPDX-License-Identifier: Apache-2.0
/** The stages of host policy as the programs have them: which rule list each asks, and in which order. The evaluator
 * (lib/policy/stages.ts) has an order of its own, and tests compare them. Layer: agent. */
import type { Direction } from '#lib/model/policy.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { HostSlot } from '#agent/compile/policy/tables.ts'

/** Rules that see every packet by itself, those before services are translated, those of what passes through, those
 * of what the node itself sends and receives. */
export type HostStage = 'untracked' | 'early' | 'forward' | 'normal'

/** Undefined: there are no such rules. */
export const STAGE_SLOTS: Readonly<Record<HostStage, Readonly<Record<Direction, HostSlot | undefined>>>> = {
  untracked: { ingress: 'untrackedIngress', egress: 'untrackedEgress' },
  early: { ingress: 'earlyIngress', egress: undefined },
  forward: { ingress: 'forwardIngress', egress: 'forwardEgress' },
  normal: { ingress: 'normalIngress', egress: 'normalEgress' },
}

export interface StageQuery {
  readonly stage: HostStage
  readonly packet: Packet
}

/** What is asked as a packet comes in, until one decides. `before`: as it came, and not as it is translated.
 * `byDevice`: of the network, not out of the tunnel nor from a pod. `isOwn`: it is for the node itself. */
export function stagesIn(of: {
  readonly before: Packet
  readonly packet: Packet
  readonly byDevice: boolean
  readonly isOwn: boolean
}): readonly StageQuery[] {
  const late: StageQuery = { stage: of.isOwn ? 'normal' : 'forward', packet: of.packet }
  return of.byDevice ? [{ stage: 'untracked', packet: of.before }, { stage: 'early', packet: of.before }, late] : [late]
}

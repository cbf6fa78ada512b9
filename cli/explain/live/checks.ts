// SPDX-License-Identifier: Apache-2.0
/** What the rules in pinned maps say of a packet: those of the node's devices, and those of its ends that are pods
 * here. Layer: cli (pure). */
import { ADDR_LOCAL_POD, ADDR_SELF, FAILSAFE_IN, FAILSAFE_OUT, FAILSAFE_V6, HOST_REAL, HOST_STAGED } from '#lib/base/bpf-constants.ts'
import { formatAddr, isV4 } from '#lib/base/ip.ts'
import type { Direction } from '#lib/model/policy.ts'
import { UDP, type Packet } from '#lib/policy/packet.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { NO_SET, type SetId } from '#agent/compile/policy/tables.ts'
import { stagesIn, type HostStage } from '#agent/policy/host-stages.ts'
import { judgeBySet } from '#agent/policy/judge.ts'
import type { PolicyLookup } from '#agent/policy/table-rows.ts'
import type { PolicyVerdict } from '#agent/policy/verdict.ts'
import { isOfCluster } from '#agent/compile/policy/rulesets/rule-numbers.ts'
import { inTurn, type Stage } from '../stages.ts'
import { ruleRecord, type RuleNames, type RuleRecord } from '../../rules.ts'
import type { Tables } from '../../map-tables.ts'
import { addressKind } from './own-address.ts'
import { pinnedPolicy } from './pinned-policy.ts'

export interface SideVerdict {
  /** `open`: the next check decides */
  readonly verdict: 'allow' | 'deny' | 'open'
  /** that decided; null: no rules are asked */
  readonly rule: RuleRecord | null
  /** that passed it on, in order */
  readonly passed: readonly RuleRecord[]
}

export interface SideCheck extends SideVerdict {
  readonly stage: Stage
  readonly direction: Direction
  /** "10.1.0.2", a pod's; "eth0"; "the node" for what its pods send to it */
  readonly of: string
  /** with the staged policies; null: the same */
  readonly staged: SideVerdict | null
}

export interface Passage {
  /** as it came, and behind translation */
  readonly before: Packet
  readonly packet: Packet
  /** by which it came; 0: from a pod of this node */
  readonly device: number
  /** by which it leaves, if that is known; 0: none */
  readonly out: number
}

export interface Knowledge {
  readonly tables: Tables
  readonly deviceName: (index: number) => string
  readonly names: RuleNames
}

/** In the order in which programs ask; those that have no rules are left out, but for pods. */
export function checksOf(of: Knowledge, passage: Passage): readonly SideCheck[] {
  const { before, packet } = passage
  if (packet.src !== packet.dst) return new Checks(of, passage).all()
  if (before.dst === packet.dst) return []
  // of what denies what a pod sends to itself by a service only rules of ClusterNetworkPolicies count
  return new Checks(of, passage).ofPods().filter(({ verdict, rule }) => verdict === 'deny' && isOfCluster(rule?.number ?? 0))
}

interface Asked extends Pick<SideCheck, 'stage' | 'direction' | 'of'> {
  readonly packet: Packet
  readonly sets: readonly [real: SetId, staged: SetId]
}

class Checks {
  readonly #of: Knowledge
  readonly #passage: Passage
  readonly #lookup: PolicyLookup

  constructor(of: Knowledge, passage: Passage) {
    this.#of = of
    this.#passage = passage
    this.#lookup = pinnedPolicy(of.tables)
  }

  all(): readonly SideCheck[] {
    const { packet, out } = this.#passage
    return [
      ...this.#comingIn(addressKind(this.#of.tables, packet.dst)?.kind === ADDR_SELF),
      ...(out === 0 ? [] : this.#host('forward', { direction: 'egress', device: out, packet })),
      ...this.ofPods(),
    ]
  }

  ofPods(): readonly SideCheck[] {
    const { packet } = this.#passage
    const addrs = this.#of.tables.open(catalogue.np_addrs)
    const [src, dst] = [addrs.get(packet.src), addrs.get(packet.dst)]
    const pod = (direction: SideCheck['direction'], seen: Packet, sets: Asked['sets']): SideCheck =>
      this.#ask({ stage: 'pod', direction, of: formatAddr(direction === 'egress' ? seen.src : seen.dst), packet: seen, sets })
    return [
      // what a pod sends is asked about where it leaves the pod
      ...(src?.kind === ADDR_LOCAL_POD && this.#passage.device === 0 ? [pod('egress', this.#sent(), [src.egress, src.staged_egress])] : []),
      ...(dst?.kind === ADDR_LOCAL_POD ? [pod('ingress', packet, [dst.ingress, dst.staged_ingress])] : []),
    ]
  }

  /** As the sending pod's rules see it: node ports of this node as they were asked for. A load balancer's address may
   * be the node's as well. */
  #sent(): Packet {
    const { before, packet } = this.#passage
    const isOwn = this.#of.tables.open(catalogue.np_addrs).get(before.dst)?.kind === ADDR_SELF
    const key = { addr: before.dst, port: before.dport, proto: before.protocol }
    const isNodePort = before.dst !== packet.dst && isOwn && this.#of.tables.open(catalogue.np_frontends).get(key) === undefined
    return isNodePort ? before : packet
  }

  #comingIn(isOwn: boolean): readonly SideCheck[] {
    const { before, packet, device } = this.#passage
    if ((device === 0 && !isOwn) || (isOwn && this.#isFailsafe(FAILSAFE_IN, packet.dport))) return []
    return inTurn(stagesIn({ before, packet, byDevice: device !== 0, isOwn }), ({ stage, packet: seen }) => {
      const isAnswer = stage === 'untracked' && isOwn && packet.protocol === UDP && this.#isFailsafe(FAILSAFE_OUT, packet.sport)
      const asked = this.#host(stage, { direction: 'ingress', device, packet: seen })
      return asked.filter(({ verdict }) => verdict !== 'deny' || !isAnswer)
    })
  }

  #host(
    stage: HostStage,
    { direction, device, packet }: { readonly direction: SideCheck['direction']; readonly device: number; readonly packet: Packet },
  ): readonly SideCheck[] {
    const hosts = this.#of.tables.open(catalogue.np_hosts)
    const real = hosts.get({ ifindex: device, view: HOST_REAL })
    const field = `${stage}_${direction}` as const
    if (real === undefined || field === 'early_egress') return []
    const staged = hosts.get({ ifindex: device, view: HOST_STAGED }) ?? real
    const sets = [real[field], staged[field]] as const
    const of = device === 0 ? 'the node' : this.#of.deviceName(device)
    return sets.every((set) => set === NO_SET) ? [] : [this.#ask({ stage, direction, of, packet, sets })]
  }

  #ask({ packet, sets, ...what }: Asked): SideCheck {
    const side = (set: SetId): SideVerdict => {
      if (set === NO_SET) return { verdict: what.stage === 'pod' ? 'allow' : 'open', rule: null, passed: [] }
      return sideVerdict(judgeBySet(this.#lookup, set, { packet, direction: what.direction }), this.#of.names)
    }
    const [real, staged] = [side(sets[0]), side(sets[1])]
    return { ...what, ...real, staged: isSame(real, staged) ? null : staged }
  }

  /** A port of the node's own, or of the packet's sender. */
  #isFailsafe(of: number, port: number): boolean {
    const { src, protocol } = this.#passage.packet
    const key = { prefix: 160, direction: of | (isV4(src) ? 0 : FAILSAFE_V6), proto: protocol, port, addr: src }
    return this.#of.tables.open(catalogue.np_failsafes).get(key) !== undefined
  }
}

function sideVerdict({ action, rule, passed }: PolicyVerdict, names: RuleNames): SideVerdict {
  return {
    verdict: action,
    rule: rule === undefined ? null : ruleRecord(rule, names),
    passed: passed.map((number) => ruleRecord(number, names)),
  }
}

function isSame(a: SideVerdict, b: SideVerdict): boolean {
  return a.verdict === b.verdict && a.rule?.number === b.rule?.number
}

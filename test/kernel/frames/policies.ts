// SPDX-License-Identifier: Apache-2.0
/** What the policies of a sequence of frames deny, as lib/policy's evaluator has it. Layer: test. */
import type { Failsafes } from '#lib/model/failsafe.ts'
import { isV4, isWithin } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { Direction, Policy } from '#lib/model/policy.ts'
import { selects } from '#lib/model/selector/selector.ts'
import { Evaluator } from '#lib/policy/evaluate.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { endpoint, pods, worldOf } from './cluster.ts'

interface OfHost {
  readonly packets: readonly Packet[]
  /** the same before a service was translated */
  readonly before: readonly Packet[]
  readonly direction: Direction
  readonly ofHost: boolean
}

interface PodPackets {
  /** as the sender's policies see them */
  readonly leaving: readonly Packet[]
  readonly coming: readonly Packet[]
}

/** Where a packet may be read in several ways, it is refused when all of them are. */
export class PolicyOpinion {
  /** the node has a host endpoint */
  readonly ofHosts: boolean
  /** and its policy denies something that comes to the node */
  readonly closesHost: boolean
  readonly #evaluator: Evaluator
  readonly #failsafes: Failsafes

  constructor(policies: readonly Policy[], failsafes: Failsafes) {
    const ofHost = policies.filter(({ subject }) => selects(subject, endpoint.labels))
    this.ofHosts = ofHost.length > 0
    this.closesHost = ofHost.some(({ scope }) => scope === 'normal')
    this.#evaluator = new Evaluator(worldOf(policies, this.ofHosts))
    this.#failsafes = failsafes
  }

  /** By which end's policies; undefined: by none. */
  refusesPod({ leaving, coming }: PodPackets, { egress, ingress }: Readonly<Record<Direction, boolean>>): string | undefined {
    const refuses = (packets: readonly Packet[], direction: Direction): boolean =>
      packets.every((packet) => {
        const pod = podAt(direction === 'egress' ? packet.src : packet.dst)
        return pod !== undefined && this.#evaluator.pod(pod, packet, { direction }).action === 'deny'
      })
    if (egress && refuses(leaving, 'egress')) return "the sender's policies"
    return ingress && refuses(coming, 'ingress') ? "the receiver's policies" : undefined
  }

  untracked(packets: readonly Packet[], direction: Direction): 'allow' | 'deny' | 'silent' {
    if (!this.ofHosts) return 'silent'
    const said = packets.map((packet) => {
      if (this.#isSpared(packet)) return 'allow'
      const { action, hits } = this.#evaluator.untracked(endpoint, packet, { direction })
      return hits.at(-1)?.kind === 'end' ? 'silent' : action
    })
    return said.includes('allow') ? 'allow' : said.includes('silent') ? 'silent' : 'deny'
  }

  isUntracked(packets: readonly Packet[]): boolean {
    return this.untracked(packets, 'ingress') === 'allow'
  }

  refusesHost({ packets, before, direction, ofHost }: OfHost): boolean {
    if (!this.ofHosts) return false
    return packets.every((packet, at) => {
      const was = before[at] ?? packet
      if (this.#isSpared(packet) || this.#isSpared(was)) return false
      return this.#evaluator.host(endpoint, { direction, packet, before: was, ofHost }).action === 'deny'
    })
  }

  /** By a failsafe port of either direction, at either end. */
  #isSpared({ src, dst, protocol, sport, dport }: Packet): boolean {
    return [...this.#failsafes.inbound, ...this.#failsafes.outbound].some(
      (one) =>
        one.protocol === protocol &&
        [sport, dport].includes(one.port) &&
        (one.net === undefined || [src, dst].some((addr) => one.net !== undefined && isWithin([one.net], addr))),
    )
  }
}

/** Of this node. */
function podAt(addr: Addr): (typeof pods)[number] | undefined {
  return pods.find(({ nodeName, podIPs }) => nodeName === 'one' && podIPs.some((own) => own === addr && isV4(own) === isV4(addr)))
}

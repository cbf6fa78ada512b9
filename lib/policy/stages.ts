// SPDX-License-Identifier: Apache-2.0
/** What a packet passes at one interface: host policy of three kinds, then the pod's own. Layer: lib/policy (pure).
 *
 * An allow of host policy ends host policy, not the pod's; a deny ends everything. */
import { judge } from './walk-rules.ts'
import type { Hit, Judgement, Line } from './walk-rules.ts'
import type { Packet } from './packet.ts'
import type { Peers } from './peers.ts'

/** Undefined: there is none of that kind. */
export interface Stages<P> {
  /** before services are translated: sees the packet as it came */
  readonly early: Line<P> | undefined
  /** of what neither comes from the host nor goes to it */
  readonly forward: Line<P> | undefined
  /** of what does */
  readonly normal: Line<P> | undefined
  readonly workload: Line<P> | undefined
}

export interface Passing {
  readonly packet: Packet
  /** as it was before a service was translated; the same where none was */
  readonly before: Packet
  /** the host itself sends or receives it */
  readonly ofHost: boolean
}

export function judgeStages<P>(stages: Stages<P>, { packet, before, ofHost }: Passing, peers: Peers): Judgement<P> {
  const hits: Hit<P>[] = []
  /** undefined: nothing has decided */
  const ask = (line: Line<P> | undefined, what: Packet): 'allow' | 'deny' | undefined => {
    if (line === undefined) return undefined
    const judgement = judge(line, what, peers)
    const open = judgement.action === 'allow' && judgement.hits.at(-1)?.kind === 'end'
    hits.push(...(open ? judgement.hits.slice(0, -1) : judgement.hits))
    return open ? undefined : judgement.action
  }
  const host = ask(stages.early, before) ?? ask(ofHost ? stages.normal : stages.forward, packet) ?? 'allow'
  if (host === 'deny' || stages.workload === undefined) return { action: host, hits: ended(hits, host) }
  const workload = judge(stages.workload, packet, peers)
  return { action: workload.action, hits: [...hits, ...workload.hits] }
}

/** Adds the end of the stages as a hit, where no rule decided. */
function ended<P>(hits: readonly Hit<P>[], action: 'allow' | 'deny'): readonly Hit<P>[] {
  return hits.length > 0 && hits.at(-1)?.action !== 'pass' ? hits : [...hits, { kind: 'end', action }]
}

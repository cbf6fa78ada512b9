// SPDX-License-Identifier: Apache-2.0
/** The answer to one question about a flow, as data: what --json shows. Layer: cli (pure). */
import { formatAddr, protocolText } from '#lib/base/ip.ts'
import { hasPorts, type Packet } from '#lib/policy/packet.ts'
import { traceOf, disagreements, isSameTrace, type Trace } from './trace.ts'
import type { ExplainedCluster } from './cluster.ts'

export interface PartyRecord {
  readonly address: string
  /** null where the protocol has none */
  readonly port: number | null
  /** "shop/web", "node n1", "outside" */
  readonly owner: string
  readonly node: string | null
}

export interface Explanation {
  readonly proto: string
  readonly icmp: { readonly type: number; readonly code: number } | null
  readonly from: PartyRecord
  readonly to: PartyRecord
  /** as things are */
  readonly now: Trace
  /** as they would be with the staged policies; null: the same */
  readonly staged: Trace | null
  /** as they would be with the candidates; null: there are none */
  readonly candidate: { readonly now: Trace; readonly staged: Trace | null; readonly changes: boolean } | null
  /** defects: where the policies and their compiled tables do not say the same */
  readonly disagreements: readonly string[]
}

export interface ExplainOptions {
  readonly entry: string | undefined
  readonly device: string | undefined
}

/** `candidate`: the same cluster with the candidates. */
export function explain(
  worlds: { readonly now: ExplainedCluster; readonly candidate: ExplainedCluster | undefined },
  packet: Packet,
  options: ExplainOptions,
): Explanation {
  const { protocol, src, dst, sport, dport, icmp } = packet
  const party = (addr: typeof src, port: number): PartyRecord => ({
    address: formatAddr(addr),
    port: hasPorts(protocol) ? port : null,
    owner: worlds.now.ownerText(addr),
    node: worlds.now.owner(addr).node ?? null,
  })
  const now = bothViews(worlds.now, packet, options)
  const then = worlds.candidate && bothViews(worlds.candidate, packet, options)
  const changes = then !== undefined && !(isSameTrace(now.now, then.now) && isSameTrace(now.staged ?? now.now, then.staged ?? then.now))
  const courses = [now.now, now.staged, then?.now, then?.staged].filter((course) => course !== null && course !== undefined)
  return {
    proto: protocolText(protocol),
    icmp: icmp ?? null,
    from: party(src, sport),
    to: party(dst, dport),
    ...now,
    candidate: then === undefined ? null : { ...then, changes },
    disagreements: [...new Set(courses.flatMap(disagreements))],
  }
}

interface Views {
  readonly now: Trace
  readonly staged: Trace | null
}

export function bothViews(world: ExplainedCluster, packet: Packet, options: ExplainOptions): Views {
  const now = traceOf(world, packet, { ...options, view: 'real' })
  const staged = traceOf(world, packet, { ...options, view: 'staged' })
  return { now, staged: isSameTrace(now, staged) ? null : staged }
}

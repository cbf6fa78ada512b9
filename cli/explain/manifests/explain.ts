// SPDX-License-Identifier: Apache-2.0
/** The answer to one question about a flow, as data: what --json shows. Layer: cli (pure). */
import { formatAddr, protocolText } from '#lib/base/ip.ts'
import { hasPorts, type Packet } from '#lib/policy/packet.ts'
import { courseOf, disagreements, isSameCourse, type Course } from './trace.ts'
import type { World } from './cluster.ts'

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
  readonly now: Course
  /** as they would be with the staged policies; null: the same */
  readonly staged: Course | null
  /** as they would be with the candidates; null: there are none */
  readonly candidate: { readonly now: Course; readonly staged: Course | null; readonly changes: boolean } | null
  /** defects: where the policies and their compiled tables do not say the same */
  readonly disagreements: readonly string[]
}

export interface ExplainOptions {
  readonly entry: string | undefined
  readonly device: string | undefined
}

/** `candidate`: the same cluster with the candidates. */
export function explain(
  worlds: { readonly now: World; readonly candidate: World | undefined },
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
  const changes = then !== undefined && !(isSameCourse(now.now, then.now) && isSameCourse(now.staged ?? now.now, then.staged ?? then.now))
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
  readonly now: Course
  readonly staged: Course | null
}

export function bothViews(world: World, packet: Packet, options: ExplainOptions): Views {
  const now = courseOf(world, packet, { ...options, view: 'real' })
  const staged = courseOf(world, packet, { ...options, view: 'staged' })
  return { now, staged: isSameCourse(now, staged) ? null : staged }
}

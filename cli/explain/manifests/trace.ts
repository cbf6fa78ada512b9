// SPDX-License-Identifier: Apache-2.0
/** What becomes of a packet from end to end: each outcome that the choice of a backend may lead to. Layer: cli
 * (pure). */
import { formatAddr } from '#lib/base/ip.ts'
import type { View } from '#lib/policy/rule-order.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { Check } from './endpoint-check.ts'
import { checksAt, nextOf, type NodeCheck, type Visit } from './node-checks.ts'
import { backendText, translate, type BackendText, type Stop, type Translation } from './translate.ts'
import type { ExplainedCluster } from './cluster.ts'

/** `refuse`: answered with an error; `drop`: not answered, for a reason that is no policy */
export type Verdict = 'allow' | 'deny' | 'refuse' | 'drop'

/** One for all backends with the same outcome. */
export interface Outcome {
  readonly verdict: Verdict
  /** where the packet ends up; empty where it goes nowhere */
  readonly to: readonly BackendText[]
  readonly checks: readonly Check[]
  /** the address that the last node sees, where it is not the sender's own */
  readonly seenAs: string | null
  /** of `refuse` and `drop` */
  readonly reason: string | null
}

export interface Trace {
  /** `depends`: on the backend that is chosen */
  readonly verdict: Verdict | 'depends'
  readonly translations: readonly Translation[]
  readonly outcomes: readonly Outcome[]
}

interface Branch extends Omit<Outcome, 'to'> {
  readonly to: BackendText | undefined
  readonly translations: readonly Translation[]
}

export interface TraceOptions {
  readonly view: View
  /** where it enters the cluster, if it comes from outside */
  readonly entry: string | undefined
  readonly device: string | undefined
}

export function traceOf(world: ExplainedCluster, packet: Packet, options: TraceOptions): Trace {
  const from = world.owner(packet.src)
  const entry = from.node ?? options.entry ?? entryOf(world, packet)
  const visit = entry === undefined ? undefined : { node: world.view(entry), before: packet, arrival: arrivalOf(from.node) }
  const branches = visit === undefined ? [passing(world, packet)] : branchesAt({ world, ...options }, visit)
  const outcomes = grouped(branches)
  const [first] = outcomes
  const agreed = first !== undefined && outcomes.every(({ verdict }) => verdict === first.verdict)
  const translations = new Map(branches.flatMap((branch) => branch.translations).map((one) => [`${one.node} ${one.frontend}`, one]))
  return { verdict: agreed ? first.verdict : 'depends', translations: [...translations.values()], outcomes }
}

function arrivalOf(node: string | undefined): Visit['arrival'] {
  return node === undefined ? 'network' : 'here'
}

/** The node that has the destination, else the first at which this is a service. */
function entryOf(world: ExplainedCluster, { dst, dport, protocol }: Packet): string | undefined {
  const owner = world.owner(dst).node
  if (owner !== undefined) return owner
  return world.nodesInOrder().find(({ name }) => world.view(name).frontend(dst, dport, protocol) !== undefined)?.name
}

/** Nothing of the cluster is in its way. */
function passing(world: ExplainedCluster, { dst, dport }: Packet): Branch {
  return { verdict: 'allow', to: backendText(world, dst, dport), checks: [], seenAs: null, reason: null, translations: [] }
}

function branchesAt(station: NodeCheck, visit: Omit<Visit, 'packet'>): readonly Branch[] {
  const { world } = station
  const { node, arrival, before } = visit
  const inside = arrival === 'here'
  const { translation, stop, packets } =
    arrival === 'tunnel'
      ? { translation: undefined, stop: undefined, packets: [before] }
      : translate(world, node, { packet: before, inside })
  const translations = translation === undefined ? [] : [translation]
  if (stop !== undefined) return [{ ...stopped(stop), translations }]
  return packets.flatMap((packet) => {
    const checks = checksAt(station, { ...visit, packet })
    const next = nextOf(world, { ...visit, packet })
    const rest = next === undefined ? [passing(world, packet)] : branchesAt(station, next)
    return rest.map((branch) =>
      joined({ checks, translations, seenAs: next && next.before.src !== before.src ? formatAddr(next.before.src) : null }, branch),
    )
  })
}

function stopped({ verdict, reason }: Stop): Omit<Branch, 'translations'> {
  return { verdict, reason, to: undefined, checks: [], seenAs: null }
}

function joined({ checks, translations, seenAs }: Pick<Branch, 'checks' | 'translations' | 'seenAs'>, rest: Branch): Branch {
  const denied = checks.some(({ verdict }) => verdict === 'deny')
  return {
    ...rest,
    verdict: denied ? 'deny' : rest.verdict,
    checks: [...checks, ...rest.checks],
    seenAs: rest.seenAs ?? seenAs,
    translations: [...translations, ...rest.translations],
  }
}

/** Those with the same verdicts by the same rules are one. */
function grouped(branches: readonly Branch[]): readonly Outcome[] {
  return [...Map.groupBy(branches, signature).values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const { verdict, checks, seenAs, reason } = first
    return [{ verdict, to: group.flatMap(({ to }) => to ?? []), checks, seenAs, reason }]
  })
}

/** Of the whole outcome but the names of the ends, which differ. */
function signature({ verdict, checks, seenAs, reason }: Pick<Outcome, 'verdict' | 'checks' | 'seenAs' | 'reason'>): string {
  const said = checks.map(({ stage, direction, verdict: own, steps, disagreement }) => [stage, direction, own, steps, disagreement])
  return JSON.stringify([verdict, said, seenAs, reason])
}

/** Do both have the same outcomes? */
export function isSameTrace(a: Trace, b: Trace): boolean {
  const texts = ({ translations, outcomes }: Trace): string =>
    JSON.stringify([translations, outcomes.map((outcome) => [signature(outcome), outcome.to])])
  return texts(a) === texts(b)
}

export function disagreements(course: Trace): readonly string[] {
  return course.outcomes.flatMap(({ checks }) =>
    checks.flatMap(({ endpoint, node, direction, disagreement }) =>
      disagreement === null ? [] : [`${direction} of ${endpoint} at node ${node}: ${disagreement}`],
    ),
  )
}

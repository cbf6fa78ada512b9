// SPDX-License-Identifier: Apache-2.0
/** What one endpoint's rules say of a packet, by the evaluator and by the compiled tables, which must agree.
 * Layer: cli (pure). */
import { podLabels } from '#lib/model/effective-labels.ts'
import type { Pod } from '#lib/model/pod.ts'
import { isClosedIn } from '#lib/model/policy-order.ts'
import { conditionsText } from '#lib/model/policy-text.ts'
import type { Direction, HostEndpoint, Policy, Rule } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { hostStages, untrackedLine } from '#lib/policy/host.ts'
import { judge, type Hit, type Judgement, type Line } from '#lib/policy/walk-rules.ts'
import { podLine, type View } from '#lib/policy/rule-order.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { isAbout } from '#lib/policy/rule.ts'
import { NO_ROOM } from '#agent/compile/policy/rules/rule-list.ts'
import { NO_SET, type SetId } from '#agent/compile/policy/tables.ts'
import { STAGE_SLOTS, type HostStage } from '#agent/policy/host-stages.ts'
import { judgeBySet } from '#agent/policy/judge.ts'
import type { PolicyVerdict } from '#agent/policy/verdict.ts'
import type { Stage } from '../stages.ts'
import type { NodeView } from './node-view.ts'
import type { ExplainedCluster } from './cluster.ts'

/** One tier, or what comes after the tiers. */
export interface Step {
  /** null: after the tiers */
  readonly tier: string | null
  readonly outcome: 'allow' | 'deny' | 'pass' | 'open'
  /** "NetworkPolicy/shop/web", "Profile/kns.shop"; null: the end of the tier, or no rule decided */
  readonly by: string | null
  /** the rule's place in the author's list, from 0 */
  readonly rule: number | null
  /** what the programs record; null where they record nothing */
  readonly id: number | null
  readonly text: string
}

export interface Check {
  readonly node: string
  /** "Pod/shop/web", "HostEndpoint/eth0" */
  readonly endpoint: string
  readonly stage: Stage
  readonly direction: Direction
  /** `open`: the next check decides */
  readonly verdict: 'allow' | 'deny' | 'open'
  readonly steps: readonly Step[]
  /** how evaluator and tables differ: a defect */
  readonly disagreement: string | null
}

export type Subject = { readonly stage: 'pod'; readonly endpoint: Pod } | { readonly stage: HostStage; readonly endpoint: HostEndpoint }

export interface CheckQuery {
  readonly subject: Subject
  readonly direction: Direction
  readonly packet: Packet
  readonly view: View
}

export function check(world: ExplainedCluster, node: NodeView, query: CheckQuery): Check {
  const { subject, direction, packet } = query
  const line = lineOf(world, query)
  const judgement = judge(line, packet, world.peers)
  const set = setOf(node, query)
  const tables = judgeBySet(node.policy.tables, set, query)
  const last = judgement.hits.at(-1)
  const verdict = subject.stage !== 'pod' && last?.kind === 'end' && last.action === 'allow' ? 'open' : judgement.action
  const ids = numbersOf(tables, node)
  if (ids.has(NO_ROOM)) return noRoom(node, query, ids.get(NO_ROOM) ?? null)
  return {
    node: node.name,
    endpoint: refText(subject.endpoint),
    stage: subject.stage,
    direction,
    verdict,
    steps: judgement.hits.map((hit) => stepOf(hit, { world, line, query, ids })),
    disagreement: difference({ judgement, verdict, set, tables, names: [...ids.keys()] }, direction),
  }
}

/** Whatever the policies say. */
function noRoom(node: NodeView, { subject, direction }: CheckQuery, id: number | null): Check {
  const text = `there is no room on the node for the policies of its namespace: closed`
  const step = { tier: null, outcome: 'deny' as const, by: null, rule: null, id, text }
  const of = { node: node.name, endpoint: refText(subject.endpoint), stage: subject.stage, direction }
  return { ...of, verdict: 'deny', steps: [step], disagreement: null }
}

function lineOf({ snapshot }: ExplainedCluster, { subject, direction, view }: CheckQuery): Line<Policy> {
  const of = { direction, view }
  switch (subject.stage) {
    case 'pod':
      return podLine({ ...snapshot, labels: podLabels(subject.endpoint, snapshot) }, subject.endpoint, of)
    case 'untracked':
      return untrackedLine(snapshot, subject.endpoint, of)
    default:
      return hostStages(snapshot, subject.endpoint, of)[subject.stage] ?? { tiers: [], profiles: [], end: 'allow' }
  }
}

function setOf({ policy: { tables } }: NodeView, { subject, direction, packet, view }: CheckQuery): SetId {
  if (subject.stage === 'pod') {
    const end = tables.end(direction === 'ingress' ? packet.dst : packet.src)
    if (end === undefined) return NO_SET
    if (view === 'real') return end[direction]
    return direction === 'ingress' ? end.stagedIngress : end.stagedEgress
  }
  const host = tables.host(refText(subject.endpoint))
  const slot = STAGE_SLOTS[subject.stage][direction]
  if (host === undefined || slot === undefined) return NO_SET
  return (view === 'real' ? host.sets : host.staged)[slot]
}

/** Of the rules that passed and the one that decided, by name. */
function numbersOf({ passed, rule }: PolicyVerdict, { policy }: NodeView): ReadonlyMap<string, number> {
  const numbers = rule === undefined ? passed : [...passed, rule]
  return new Map(numbers.map((number) => [policy.ruleName(number) ?? `number ${number}`, number]))
}

/** What the compiler calls the rule behind a hit; undefined: there is none in the tables. */
function nameOf(hit: Hit<Policy>, direction: Direction): string | undefined {
  switch (hit.kind) {
    case 'rule':
      return `${refText(hit.policy)} ${direction} ${hit.at}`
    case 'tier-end':
      return hit.action === 'pass' ? undefined : `Tier/${hit.tier} ${direction} end`
    case 'profile':
      return `Profile/${hit.profile} ${direction} ${hit.at}`
    case 'end':
      return `no policy ${direction}`
  }
}

interface Answers {
  readonly judgement: Judgement<Policy>
  readonly verdict: Check['verdict']
  readonly set: SetId
  readonly tables: PolicyVerdict
  readonly names: readonly string[]
}

function difference({ judgement, verdict, set, tables, names }: Answers, direction: Direction): string | null {
  const byTables = set === NO_SET && verdict === 'open' ? 'open' : tables.action
  const wanted = judgement.hits.flatMap((hit) => nameOf(hit, direction) ?? [])
  if (byTables === verdict && (set === NO_SET || wanted.join() === names.join())) return null
  return `policies say ${verdict} (${wanted.join(', ')}), their compiled tables ${byTables} (${names.join(', ') || 'no rule'})`
}

interface Story {
  readonly world: ExplainedCluster
  readonly line: Line<Policy>
  readonly query: CheckQuery
  readonly ids: ReadonlyMap<string, number>
}

function stepOf(hit: Hit<Policy>, { world, line, query, ids }: Story): Step {
  const name = nameOf(hit, query.direction)
  const id = (name === undefined ? undefined : ids.get(name)) ?? null
  const textOf = (rules: readonly Rule[] | undefined, at: number): string => {
    const rule = rules?.find((one) => one.at === at && isAbout(one, query.packet, world.peers))
    return rule === undefined ? '' : conditionsText(rule)
  }
  switch (hit.kind) {
    case 'rule': {
      const policies = line.tiers.find(({ tier }) => tier === hit.tier)?.policies
      const rules = policies?.find(({ of }) => of === hit.policy)?.rules
      return { tier: hit.tier, outcome: hit.action, by: refText(hit.policy), rule: hit.at, id, text: textOf(rules, hit.at) }
    }
    case 'tier-end':
      return { tier: hit.tier, outcome: hit.action, by: null, rule: null, id, text: endText(line, hit.tier) }
    case 'profile': {
      const rules = line.profiles.find(({ of }) => of === hit.profile)?.rules
      return { tier: null, outcome: hit.action, by: `Profile/${hit.profile}`, rule: hit.at, id, text: textOf(rules, hit.at) }
    }
    case 'end':
      return { tier: null, outcome: hit.action === 'allow' ? 'open' : 'deny', by: null, rule: null, id, text: 'nothing decides' }
  }
}

/** Names some of the policies of which no rule matched. */
const MOST_NAMED = 3

function endText({ tiers }: Line<Policy>, name: string): string {
  const policies = tiers.find(({ tier }) => tier === name)?.policies.map(({ of }) => of) ?? []
  const closed = policies.find((policy) => isClosedIn(policy, name))
  if (closed !== undefined) {
    const why = closed.closed === true ? 'cannot be read' : `is of Tier ${closed.tier}, which is not there`
    return `${refText(closed)} ${why}: closed`
  }
  const names = policies.slice(0, MOST_NAMED).map(refText)
  const more = policies.length - names.length
  return `end of the tier: no rule of ${names.join(', ')}${more === 0 ? '' : ` and ${more} more`}`
}

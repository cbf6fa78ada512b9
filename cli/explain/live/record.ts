// SPDX-License-Identifier: Apache-2.0
/** What `explain` on a node answers: what --json shows. Layer: cli (pure). */
import type { NextHop } from '../../bpf/next-hop.ts'
import { ruleText, type FlowRules, type RuleNames } from '../../rules.ts'
import type { EndRecord } from '../../text.ts'
import type { RunResult } from './run.ts'
import type { SideCheck } from './checks.ts'
import type { ServiceRecord } from './service.ts'

/** What the loaded program did with the packet. */
export interface RunRecord {
  /** `pass`: it left the packet to the kernel, without a flow; `refuse`: it answered with an error */
  readonly verdict: 'allow' | 'deny' | 'refuse' | 'drop' | 'pass'
  readonly action: RunResult['action']
  /** reasons that were counted meanwhile: on a busy node others' too */
  readonly drops: readonly string[]
  readonly flow: FlowMade | null
}

export interface FlowMade {
  /** as its packets leave */
  readonly from: EndRecord
  readonly to: EndRecord
  readonly way: NextHop
  readonly rules: FlowRules
}

/** What the tables say of one way that the packet may go. */
export interface WayRecord {
  readonly to: EndRecord
  readonly verdict: 'allow' | 'deny'
  readonly checks: readonly SideCheck[]
}

export interface OnlineRecord {
  readonly proto: string
  readonly icmp: { readonly type: number; readonly code: number } | null
  readonly from: EndRecord
  readonly to: EndRecord
  readonly at: { readonly program: string; readonly id: number; readonly interface: string }
  readonly run: RunRecord
  readonly service: ServiceRecord | null
  readonly outcomes: readonly WayRecord[]
  /** a defect, or rules that changed meanwhile: tables and program do not say the same */
  readonly disagreement: string | null
}

/** Of the node's rules and the pods' in one direction, those of the pods are noted. */
export function disagreementOf({ verdict, flow }: RunRecord, ways: readonly WayRecord[], names: RuleNames): string | null {
  if (flow === null) return null
  const way = ways.find(({ to }) => to.address === flow.to.address && to.port === flow.to.port)
  if (way === undefined) return null
  if (verdict === 'allow' && way.verdict === 'deny') return `the program allows what the tables deny (${rulesText(way.checks)})`
  const wrong = way.checks.find(
    ({ stage, direction, rule }) => stage === 'pod' && rule !== null && rule.number !== flow.rules[direction]?.number,
  )
  if (wrong === undefined) return null
  const { direction, rule } = wrong
  return `${direction} by ${ruleText(flow.rules[direction])} in the flow, ${ruleText(rule)} in the tables${names.missing === undefined ? '' : ' (names are not known)'}`
}

function rulesText(checks: readonly SideCheck[]): string {
  return checks.map(({ direction, rule }) => `${direction} by ${ruleText(rule)}`).join(', ')
}

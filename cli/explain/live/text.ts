// SPDX-License-Identifier: Apache-2.0
/** An answer of the node for people to read. Layer: cli (pure). */
import { table } from '#lib/base/table.ts'
import { nextHopText } from '../../bpf/next-hop.ts'
import { ruleText } from '../../rules.ts'
import { STAGES } from '../stages.ts'
import { endText } from '../../text.ts'
import type { FlowMade, OnlineRecord, WayRecord } from './record.ts'
import type { SideCheck, SideVerdict } from './checks.ts'

export function onlineText(of: OnlineRecord): string {
  const { proto, icmp, from, to, at, run, service, outcomes, disagreement } = of
  const [ends, kind] = icmp === null ? [[from, to].map(endText), ''] : [[from.address, to.address], ` ${icmp.type}/${icmp.code}`]
  const reason = run.drops.length === 0 ? '' : ` (counted: ${run.drops.join(', ')})`
  return [
    `${proto}${kind} ${ends.join(' > ')}`,
    `  verdict: ${run.verdict}${reason}, by ${at.program} on ${at.interface}`,
    ...(service === null
      ? []
      : [`  service: ${service.frontend}, for ${service.choice}: ${service.backends.map(endText).join(', ') || 'no backend'}`]),
    ...(run.flow === null ? [] : flowLines(run.flow, icmp === null)),
    ...groups(outcomes).flatMap((group) => wayLines(group, outcomes.length > 1)),
    ...(disagreement === null
      ? []
      : [`\nDEFECT: ${disagreement}\n  Unless rules were changed meanwhile, do not trust them; please report it.`]),
    '',
  ].join('\n')
}

function flowLines({ from, to, way, rules }: FlowMade, hasPorts: boolean): readonly string[] {
  const ends = [from, to].map((end) => (hasPorts ? endText(end) : end.address)).join(' > ')
  return [`  leaves as ${ends}, next ${nextHopText(way)}; egress by ${ruleText(rules.egress)}, ingress by ${ruleText(rules.ingress)}`]
}

/** Backends with the same checks. */
function groups(ways: readonly WayRecord[]): readonly (readonly WayRecord[])[] {
  const alike = ({ stage, direction, verdict, rule, passed, staged }: SideCheck) => [stage, direction, verdict, rule, passed, staged]
  return [...Map.groupBy(ways, ({ checks }) => JSON.stringify(checks.map(alike))).values()]
}

function wayLines(group: readonly WayRecord[], several: boolean): readonly string[] {
  const [first] = group
  if (first === undefined) return []
  const head = several ? [`  to ${group.map(({ to }) => endText(to)).join(', ')}: ${first.verdict}`] : []
  if (first.checks.length === 0) return [...head, '  no end of it is a pod of this node']
  const text = table([['CHECK', 'OUTCOME', 'ID', 'RULE'], ...first.checks.flatMap(checkRows)])
  return [...head, ...text.split('\n').map((line) => `  ${line}`)]
}

function checkRows({ stage, direction, of, staged, ...real }: SideCheck): readonly (readonly string[])[] {
  const head = `${direction} ${of}${STAGES[stage]}`
  return [...sideRows(head, real), ...(staged === null ? [] : sideRows(`${head}, staged`, staged))]
}

function sideRows(head: string, { verdict, rule, passed }: SideVerdict): readonly (readonly string[])[] {
  const rows = [
    ...passed.map((one) => ['pass', String(one.number), one.name ?? '-']),
    rule === null ? [verdict, '-', 'no rules are asked'] : [verdict, String(rule.number), rule.name ?? '-'],
  ]
  return rows.map((cells, at) => [at === 0 ? head : '', ...cells])
}

// SPDX-License-Identifier: Apache-2.0
/** `bpf conntrack`: the flows that the programs know. Layer: cli (pure). */
import { protocolText } from '#lib/base/ip.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { CtTuple } from '#agent/maps/flow-key.ts'
import { flowKinds } from '#agent/maps/flow-states.ts'
import { passes, type Filter } from '../filter.ts'
import type { Question, Report } from '../report.ts'
import { flowRules, ruleText, type FlowRules, type RuleRecord } from '../rules.ts'
import { durationText, endRecord, endText, orDash, type EndRecord } from '../text.ts'
import { flagNames } from '../enum-names.ts'
import { flowsOf, type Flow, type FlowEnds } from './flows.ts'
import { nextHopOf, nextHopText, type NextHop } from './next-hop.ts'

interface Ends {
  readonly from: EndRecord
  readonly to: EndRecord
}

export interface FlowRecord extends Ends {
  readonly proto: string
  readonly state: string
  /** since the programs last looked at it closely, which a busy flow makes them do every 0.75 s */
  readonly ageMs: number
  /** what the packets leave as */
  readonly translated: Ends | null
  /** what answers leave as, where that alone is known here: the node that translates is another */
  readonly answersAs: Ends | null
  readonly there: NextHop
  readonly back: NextHop
  /** that let it be, and that would with the staged policies */
  readonly rules: FlowRules
  readonly flags: readonly string[]
  /** the other one of its two entries is gone */
  readonly half: boolean
}

export const conntrack: Report<FlowRecord> = {
  heading: ['PROTO', 'STATE', 'AGE', 'FROM', 'TO', 'TRANSLATION', 'THERE', 'BACK', 'RULES', 'STAGED', 'FLAGS'],
  async *records(question) {
    const table = question.tables.open(catalogue.np_ct)
    const record = recorder(table.btf, question)
    for await (const flows of flowsOf(table, (ends) => isAsked(ends, question.filter))) yield flows.map(record)
  },
  lines: (flow) => [
    [
      flow.proto,
      flow.state,
      durationText(flow.ageMs),
      endText(flow.from),
      endText(flow.to),
      orDash(translationText(flow)),
      nextHopText(flow.there),
      nextHopText(flow.back),
      orDash(rulesText(flow.rules)),
      orDash(stagedText(flow.rules)),
      orDash(flagsText(flow)),
    ],
  ],
}

function isAsked({ proto, sent, forward, answers }: FlowEnds, filter: Filter): boolean {
  const ends = [sent, forward, answers].flatMap((tuple) =>
    tuple === undefined
      ? []
      : [
          { addr: tuple.src, port: tuple.sport },
          { addr: tuple.dst, port: tuple.dport },
        ],
  )
  return passes(filter, { proto, ends })
}

function recorder(btf: Btf, { nowMs, interfaceName, names }: Question): (flow: Flow) => FlowRecord {
  const kind = flowKinds(btf)
  const way = nextHopOf(btf, interfaceName)
  const stateWords = flagNames(btf, 'ct_state')
  return (flow) => ({
    proto: protocolText(flow.proto),
    state: kind(flow.proto, flow.state).state,
    ageMs: Math.max(0, Math.round(nowMs - flow.seen)),
    ...ends(flow.sent),
    translated: flow.forward === undefined ? null : ends(flow.forward),
    answersAs: flow.answers === undefined ? null : ends(flow.answers),
    there: way(flow.there),
    back: way(flow.back),
    rules: flowRules(flow.rules, names),
    flags: stateWords(flow.state),
    half: flow.half,
  })
}

function ends({ src, sport, dst, dport }: CtTuple): Ends {
  return { from: endRecord({ addr: src, port: sport }), to: endRecord({ addr: dst, port: dport }) }
}

/** Only what changes. */
function translationText({ from, to, translated, answersAs }: FlowRecord): string {
  if (answersAs !== null) return `answers from ${endText(answersAs.from)}`
  if (translated === null) return ''
  const changed = (word: string, before: EndRecord, after: EndRecord): string[] =>
    endText(before) === endText(after) ? [] : [`${word} ${endText(after)}`]
  return [...changed('from', from, translated.from), ...changed('to', to, translated.to)].join(' ')
}

function rulesText({ egress, ingress }: FlowRules): string {
  return sidesText({ egress, ingress })
}

/** Where it is another rule that would decide. */
function stagedText({ egress, ingress, stagedEgress, stagedIngress }: FlowRules): string {
  const other = (real: RuleRecord | null, staged: RuleRecord | null): RuleRecord | null => (real?.number === staged?.number ? null : staged)
  return sidesText({ egress: other(egress, stagedEgress), ingress: other(ingress, stagedIngress) })
}

function sidesText({ egress, ingress }: Pick<FlowRules, 'egress' | 'ingress'>): string {
  return [...(egress === null ? [] : [`out ${ruleText(egress)}`]), ...(ingress === null ? [] : [`in ${ruleText(ingress)}`])].join(', ')
}

/** What no other column tells. */
const TOLD = new Set(['ready', 'nat', 'answer', 'encap', 'pod', 'neigh', 'stack', 'inner'])
const TOLD_BY_STATE = new Set(['seen-lo', 'seen-hi', 'tcp-open', 'fin-lo', 'fin-hi', 'rst'])

/** Those of packets there, of packets back, of the flow. */
function flagsText({ there, back, flags, half }: FlowRecord): string {
  return [
    ...there.flags.filter((flag) => !TOLD.has(flag)),
    ...back.flags.filter((flag) => !TOLD.has(flag)).map((flag) => `back-${flag}`),
    ...flags.filter((flag) => !TOLD_BY_STATE.has(flag)),
    ...(half ? ['half'] : []),
  ].join(' ')
}

// SPDX-License-Identifier: Apache-2.0
/** An explanation for people to read. Layer: cli (pure). */
import { hostPort } from '#lib/base/ip.ts'
import { table } from '#lib/base/table.ts'
import { STAGES } from '../stages.ts'
import type { Check, Step } from './endpoint-check.ts'
import type { Trace, Outcome } from './trace.ts'
import type { Explanation, PartyRecord } from './explain.ts'
import type { BackendText, Translation } from './translate.ts'

export function explanationText(of: Explanation): string {
  const { proto, icmp, from, to, now, staged, candidate } = of
  const what = icmp === null ? proto : `${proto} ${icmp.type}/${icmp.code}`
  return [
    `${what} ${partyText(from)} > ${partyText(to)}`,
    ...courseLines(now, undefined),
    ...(staged === null ? [] : variantLines('the staged policies', now, staged)),
    ...(candidate === null ? [] : candidateLines(of, candidate)),
    ...of.disagreements.map((text) => `\nDEFECT: ${text}\n  Do not trust this verdict; please report it with these manifests.`),
    '',
  ].join('\n')
}

function candidateLines({ now, staged }: Explanation, candidate: NonNullable<Explanation['candidate']>): readonly string[] {
  if (!candidate.changes) return ['', 'with the candidate: no change']
  const [before, after] = [staged ?? now, candidate.staged ?? candidate.now]
  const isStagedToo = candidate.staged !== null || staged !== null
  return [
    ...variantLines('the candidate', now, candidate.now),
    ...(isStagedToo ? variantLines('the candidate and the staged policies', before, after) : []),
  ]
}

/** What is not as before. */
function variantLines(what: string, before: Trace, after: Trace): readonly string[] {
  return ['', `with ${what}: ${changeText(before, after)}`, ...courseLines(after, before).slice(1)]
}

export function changeText(before: Trace, after: Trace): string {
  return before.verdict === after.verdict ? `${after.verdict}, as before` : `${before.verdict} -> ${after.verdict}`
}

function partyText({ address, port, owner, node }: PartyRecord): string {
  const place = port === null ? address : hostPort(address, port)
  return owner === 'outside' ? place : `${place} (${owner}${node === null || owner === `node ${node}` ? '' : ` on ${node}`})`
}

/** `before`: checks that its lines have already are left out. */
function courseLines(course: Trace, before: Trace | undefined): readonly string[] {
  const { outcomes, translations, verdict } = course
  const told = new Set((before?.outcomes ?? []).flatMap(({ checks }) => checks.map((check) => JSON.stringify(check))))
  const isNamed = outcomes.length > 1 || translations.length > 0
  return [
    `  verdict: ${verdict === 'depends' ? 'depends on the backend' : verdict}${reasonText(outcomes)}`,
    ...(before === undefined ? translations.flatMap((translation) => translationLines(translation)) : []),
    ...outcomes.flatMap((outcome) => outcomeLines(outcome, { isNamed, told })),
  ]
}

function reasonText(outcomes: readonly Outcome[]): string {
  const [first] = outcomes
  return outcomes.length === 1 && first !== undefined && first.reason !== null ? `: ${first.reason}` : ''
}

function translationLines({ node, service, frontend, nodePort, by, choice, backends }: Translation): readonly string[] {
  const kind = nodePort ? 'node port ' : ''
  const server = by === 'Netplane' ? '' : ` by ${by}`
  return [
    `  service: ${service}, ${kind}${frontend}, at ${node}${server}, for ${choice}: ${backends.length === 0 ? 'no backend' : countText(backends.length, 'backend')}`,
  ]
}

interface Telling {
  readonly isNamed: boolean
  /** checks, as JSON */
  readonly told: ReadonlySet<string>
}

function outcomeLines({ verdict, to, checks, seenAs, reason }: Outcome, { isNamed, told }: Telling): readonly string[] {
  const lines: string[] = []
  if (isNamed && to.length > 0) lines.push(`  to ${to.map(backendText).join(', ')}: ${verdict}${reason === null ? '' : `, ${reason}`}`)
  if (seenAs !== null) lines.push(`  it leaves as ${seenAs}`)
  if (checks.length === 0) return reason === null ? [...lines, '  no rules are asked'] : lines
  const rows = checks.filter((check) => !told.has(JSON.stringify(check))).flatMap(checkRows)
  if (rows.length === 0) return lines
  const text = table([['CHECK', 'TIER', 'OUTCOME', 'BY', 'RULE', 'ID', 'TEXT'], ...rows])
  return [...lines, ...text.split('\n').map((line) => `  ${line}`)]
}

function backendText({ address, port, owner, node }: BackendText): string {
  const place = port === 0 ? address : hostPort(address, port)
  return owner === 'outside' ? place : `${place} (${owner}${node === null || owner === `node ${node}` ? '' : ` on ${node}`})`
}

/** The first column of the first row alone says what is asked. */
function checkRows({ direction, endpoint, node, stage, verdict, steps }: Check): readonly (readonly string[])[] {
  const whose = endpoint.startsWith('Pod/') ? endpoint.slice('Pod/'.length) : endpoint.replace('/', ' ')
  const head = `${direction} ${whose} on ${node}${STAGES[stage]}`
  if (verdict === 'open') return [[head, '-', 'open', '-', '-', '-', steps[0]?.text ?? '']]
  return steps.map((step, at) => [at === 0 ? head : '', ...stepCells(step)])
}

function stepCells({ tier, outcome, by, rule, id, text }: Step): readonly string[] {
  return [tier ?? '-', outcome, by?.replace('/', ' ') ?? '-', rule === null ? '-' : String(rule), id === null ? '-' : String(id), text]
}

function countText(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

// SPDX-License-Identifier: Apache-2.0
/** What answers of nodes and findings of the cluster come to, in words. Layer: operator (pure). */
import { describe, FINDINGS, levelOf, type Finding } from '#lib/preflight/findings.ts'
import { namesText } from '#lib/control/names-text.ts'
import type { Cause, ComponentState } from '#lib/control/rollout.ts'
import type { NodeRunState } from './node-run.ts'

/** As much as a status holds, with room for what stands around it. */
const MOST_TEXT = 30_000

/** Arguments that differ from node to node where the trouble is one. */
const OWN: ReadonlySet<string> = new Set(['peer', 'peer address', 'addresses', 'services', 'devices'])

export interface FindingTexts {
  readonly blocking: readonly string[]
  readonly warnings: readonly string[]
}

export interface Verdict {
  readonly isPassed: boolean
  readonly state: ComponentState
}

/** `cluster`: what the API server tells, and no node. */
export function verdictOf({ results, silent, unknown, isOver }: NodeRunState, cluster: readonly Finding[]): Verdict {
  const { blocking, warnings } = findingTexts(results.findings, cluster)
  const cut = [...results.cut.values()].reduce((sum, count) => sum + count, 0)
  const more = [
    ...(cut > 0 ? [`${cut} more findings on ${namesText(results.cut.keys())}`] : []),
    ...(unknown.length > 0 ? [`whether VXLAN passes is not known, as peers did not ask at the same time: ${namesText(unknown)}`] : []),
    ...(silent.length > 0 ? [`not asked, as their kubelets say nothing: ${namesText(silent)}`] : []),
  ]
  if (blocking.length > 0) {
    const message = shortened([...blocking, ...warnings.map((text) => `warning: ${text}`), ...more])
    const cause = { reason: 'Blocked', message, kind: blockingCodes([...[...results.findings.values()].flat(), ...cluster]) }
    return { isPassed: false, state: { unavailable: cause, degraded: cause, ...asking(results, isOver) } }
  }
  const [failed] = results.failed
  if (failed !== undefined) {
    const cause = { reason: 'ProbeFailed', message: `${namesText(results.failed.keys())}: ${failed[1]}` }
    return { isPassed: false, state: { unavailable: cause, degraded: cause, ...asking(results, isOver) } }
  }
  if (!isOver) {
    const { progressing } = asking(results, isOver)
    return { isPassed: false, state: { ...(progressing === undefined ? {} : { unavailable: progressing, progressing }) } }
  }
  return { isPassed: true, state: { available: passed([...warnings, ...more]) } }
}

function asking({ waiting, failed, apart, findings }: NodeRunState['results'], isOver: boolean): { readonly progressing?: Cause } {
  if (isOver) return {}
  const unanswered = [...waiting, ...failed.keys()]
  const names = unanswered.length > 0 ? unanswered : apart.keys()
  return { progressing: { reason: 'Asking', message: `${findings.size} nodes have answered; waiting for ${namesText(names)}` } }
}

/** The same without this one, which no longer holds: of a preflight that has passed. */
export function withoutFinding(state: ComponentState, gone: Finding): ComponentState {
  if (state.available?.reason !== 'Warnings') return state
  const notes = state.available.message.split('. ').filter((text) => text !== describe(gone))
  return { ...state, available: passed(notes) }
}

function passed(notes: readonly string[]): Cause {
  return notes.length === 0 ? { reason: 'Passed', message: 'nothing is in the way' } : { reason: 'Warnings', message: shortened(notes) }
}

/** "jit-off, windows-nodes": nodes that have it may come and go. */
function blockingCodes(findings: readonly Finding[]): string {
  const codes = findings.map(({ code }) => code).filter((code) => levelOf(code) === 'blocking')
  return [...new Set(codes)].sort().join(', ')
}

/** "node a, b: what it is; what to do": the same of several nodes once, also where their peers or counts differ. */
export function findingTexts(byNode: ReadonlyMap<string, readonly Finding[]>, cluster: readonly Finding[]): FindingTexts {
  const groups = new Map<string, { readonly nodes: string[]; readonly findings: Finding[] }>()
  for (const [node, findings] of byNode)
    for (const finding of findings) {
      const key = JSON.stringify(mapOwn(finding, () => ''))
      const group = groups.get(key) ?? { nodes: [], findings: [] }
      group.nodes.push(node)
      group.findings.push(finding)
      groups.set(key, group)
    }
  const all = [
    ...cluster.map((finding) => ({ finding, text: describe(finding) })),
    ...[...groups.values()].flatMap(({ nodes, findings }) => {
      const finding = together(findings)
      return finding === undefined ? [] : [{ finding, text: `${namesText(nodes)}: ${describe(finding)}` }]
    }),
  ]
  const of = (level: 'blocking' | 'warning'): readonly string[] =>
    all.filter(({ finding }) => levelOf(finding.code) === level).map(({ text }) => text)
  return { blocking: of('blocking'), warnings: of('warning') }
}

/** Of findings that are the same but for what is each node's own. */
function together(findings: readonly Finding[]): Finding | undefined {
  const [first] = findings
  return first && mapOwn(first, (at) => namesText(findings.map(({ args }) => args[at] ?? '')))
}

/** With other texts for those of its arguments that are each node's own. */
function mapOwn({ code, args }: Finding, textOf: (at: number) => string): Finding {
  const { args: names } = FINDINGS[code]
  return { code, args: args.map((arg, at) => (OWN.has(names[at] ?? '') ? textOf(at) : arg)) }
}

/** Whole sentences as long as there is room. */
function shortened(texts: readonly string[]): string {
  const kept: string[] = []
  let length = 0
  for (const text of texts) {
    length += text.length + 2
    if (length > MOST_TEXT) return `${kept.join('. ')}. And ${texts.length - kept.length} more`
    kept.push(text)
  }
  return kept.join('. ')
}

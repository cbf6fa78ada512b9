// SPDX-License-Identifier: Apache-2.0
/** docs/troubleshooting.md: reasons of conditions and events, from the tables of those who give them.
 * Layer: scripts. */
import { REASONS as AGENT } from '#agent/status/reasons.ts'
import { REASONS as CONTROLLERS } from '#controllers/config/reasons.ts'
import type { ReasonText, ReasonTexts } from '#lib/kube/objects/reasons.ts'
import { REASONS as OPERATOR } from '#operator/status/reasons.ts'
import { marked } from './marked.ts'

const TITLES: readonly (readonly [title: string, table: ReasonTexts])[] = [
  ['NetplaneStatus and Installation', OPERATOR],
  ['ControllersConfiguration', CONTROLLERS],
  ['Nodes, Pods and what agents refuse', AGENT],
]

export function troubleshootingPage(): string {
  const sections = TITLES.map(([title, table]) => `### ${title}\n\n${HEAD}\n${Object.entries(table).map(rowOf).join('\n')}\n`)
  return marked('docs/troubleshooting.md', 'reasons', `\n${sections.join('\n')}\n`)
}

const HEAD = '| reason | of | what it means | what to do |\n| --- | --- | --- | --- |'

function rowOf([reason, { at, meaning, remedy }]: readonly [string, ReasonText]): string {
  return `| \`${reason}\` | ${at} | ${meaning} | ${remedy === '' ? '–' : remedy} |`
}

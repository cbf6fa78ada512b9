// SPDX-License-Identifier: Apache-2.0
/** `node status`: what the agent says of its node, condition by condition. Layer: cli. */
import { errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { growingTable } from '#lib/base/table.ts'
import { agentPage, DEFAULT_AGENT } from '../agent.ts'
import type { NodeStatusOrder } from '../args.ts'
import type { CommandResult } from '../command-result.ts'
import { orDash } from '../text.ts'

interface Line {
  readonly name: string
  readonly ok: boolean
  readonly since: number
  readonly reason: string
}

/** Fails when the node is not ready, or no agent answers. */
export async function statusCommand({ agent = DEFAULT_AGENT, json }: NodeStatusOrder): Promise<CommandResult> {
  try {
    const { body } = await agentPage(agent, '/readiness')
    const report: unknown = JSON.parse(body)
    const ready = isObject(report) && report['ready'] === true
    return { text: json ? `${JSON.stringify(report, undefined, 2)}\n` : tableText(report), warnings: '', exitCode: ready ? 0 : 1 }
  } catch (thrown) {
    const warnings = `no agent answers at ${agent}: ${errorText(thrown)}; its programs go on without it (netplanectl node bundle)\n`
    return { text: '', warnings, exitCode: 1 }
  }
}

function tableText(report: unknown): string {
  const lines = linesIn(report).map(({ name, ok, since, reason }) => [
    name,
    ok ? 'yes' : 'no',
    new Date(since).toISOString(),
    orDash(reason),
  ])
  return `${growingTable()([['CONDITION', 'HOLDS', 'SINCE', 'REASON'], ...lines])}\n`
}

function linesIn(report: unknown): readonly Line[] {
  const conditions: unknown = isObject(report) ? report['conditions'] : undefined
  return Array.isArray(conditions) ? conditions.filter(isLine) : []
}

function isLine(value: unknown): value is Line {
  return (
    isObject(value) &&
    typeof value['name'] === 'string' &&
    typeof value['ok'] === 'boolean' &&
    typeof value['since'] === 'number' &&
    typeof value['reason'] === 'string'
  )
}

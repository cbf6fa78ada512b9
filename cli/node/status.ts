// SPDX-License-Identifier: Apache-2.0
/** `node status`: what the agent says of its node, condition by condition, and what the cluster has heard of it.
 * Layer: cli. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { growingTable } from '#lib/base/table.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { agentPage, DEFAULT_AGENT } from '../agent.ts'
import type { NodeStatusOrder } from '../args.ts'
import { connect } from '../cluster/connect.ts'
import { mayRead } from '../cluster/may-read.ts'
import { readSettings } from '../cluster/settings.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import type { ConnectionFlags } from '../resources/order.ts'
import { orDash } from '../text.ts'
import { nodeNetworkText } from './node-network.ts'

interface Line {
  readonly name: string
  readonly ok: boolean
  readonly since: number
  readonly reason: string
}

interface Asked<T> {
  readonly found: T | undefined
  readonly warnings: readonly (string | undefined)[]
}

/** Fails when the node is not ready, no agent answers, or the cluster that was asked for has nothing of the node. */
export async function statusCommand({ agent = DEFAULT_AGENT, node, connection, json }: NodeStatusOrder): Promise<CommandResult> {
  const own = await readiness(agent)
  const network = node === undefined ? undefined : await networkOf(node, connection)
  const isReady = isObject(own.found) && own.found['ready'] === true && (network === undefined || network.found !== undefined)
  const text = json ? jsonText(own, network) : plainText(own, network)
  return { text, warnings: linesText([...own.warnings, ...(network?.warnings ?? [])]), exitCode: isReady ? 0 : 1 }
}

async function readiness(agent: string): Promise<Asked<unknown>> {
  try {
    const { body } = await agentPage(agent, '/readiness')
    return { found: JSON.parse(body), warnings: [] }
  } catch (thrown) {
    const warning = `no agent answers at ${agent}: ${errorText(thrown)}; its programs go on without it (netplanectl node bundle)`
    return { found: undefined, warnings: [warning] }
  }
}

async function networkOf(name: string, flags: ConnectionFlags): Promise<Asked<ApiObject>> {
  try {
    await using client = connect(readSettings({ flags, env: process.env }))
    const warning = await mayRead(client, false)
    const found = await getOrNone(client, { ...NODE_NETWORK, name })
    return {
      found,
      warnings: [warning, found === undefined ? `there is no NodeNetwork ${name}: its agent has not written one` : undefined],
    }
  } catch (thrown) {
    return { found: undefined, warnings: [`the NodeNetwork of ${name} is not known: ${errorText(thrown)}`] }
  }
}

/** The page itself; with what the cluster has, where that was asked for. */
function jsonText(own: Asked<unknown>, network: Asked<ApiObject> | undefined): string {
  if (network === undefined) return own.found === undefined ? '' : `${JSON.stringify(own.found, undefined, 2)}\n`
  const page = isObject(own.found) ? own.found : {}
  return `${JSON.stringify({ ...page, nodeNetwork: network.found ?? null }, undefined, 2)}\n`
}

function plainText(own: Asked<unknown>, network: Asked<ApiObject> | undefined): string {
  const parts = [
    ...(own.found === undefined ? [] : [tableText(own.found)]),
    ...(network?.found === undefined ? [] : [nodeNetworkText(network.found)]),
  ]
  return parts.join('\n')
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

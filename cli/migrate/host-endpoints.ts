// SPDX-License-Identifier: Apache-2.0
/** `migrate host-endpoints`: labels go to nodes, automatic endpoints come, and the old ones go when these judge alike.
 * Layer: cli.
 *
 * It keeps no record: what is done is seen in the cluster, so a run that was cut off is begun again. */
import { systemClock } from '#lib/base/clock.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { CONFIGURATION, EMPTY_CONFIGURATION } from '#controllers/config/configuration.ts'
import { clusterInformation } from '#lib/control/cluster-version.ts'
import { guardWrites } from '../cluster/guard.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { openCluster } from '../install/cluster.ts'
import { readMigration } from './cluster.ts'
import type { MigrateOrder } from './order.ts'
import { planMigration, type MigrationPlan, type NodePlan } from './plan.ts'

const LOOK_MS = 500

export async function hostEndpointsCommand(order: MigrateOrder): Promise<CommandResult> {
  const { allowMismatch, writes, timeoutMs, json } = order
  await using cluster = await openCluster(order)
  const { client } = cluster
  const plan = planMigration(await readMigration(client))
  if (plan.nodes.length === 0) return result({ plan, end: 'there are no host endpoints of all interfaces but automatic ones', json })
  if (problemsOf(plan).length > 0) return result({ plan, end: 'nothing was written', json, failed: true })
  if (!writes) return result({ plan, end: 'nothing was written: --yes does it', json })
  const guard = { cluster: await clusterInformation(client), version: packageVersion(), allowMismatch, isAboutLock: false }
  // a warning of it was given when the cluster was opened
  guardWrites(guard)
  await prepare(client, plan)
  const made = await automaticEndpoints(client, timeoutMs)
  const waiting = made.nodes.filter(({ isReady }) => !isReady).map(({ node }) => node)
  if (waiting.length > 0) {
    const end = `after ${timeoutMs / 1000} s there is no automatic endpoint of ${waiting.join(', ')}: do controllers run? Nothing was deleted`
    return result({ plan: made, end, json, failed: true })
  }
  // what was compared before they were made was only what they would be
  if (problemsOf(made).length > 0) return result({ plan: made, end: 'nothing was deleted', json, failed: true })
  const old = made.nodes.flatMap((node) => node.old)
  for (const object of old) await remove(client, object)
  return result({ plan, end: `deleted: ${old.map(({ metadata }) => metadata.name).join(', ')}`, json })
}

/** Labels first: an automatic endpoint without them would be under other policies, and may count at once. */
async function prepare(client: ApiClient, { nodes, isToEnable }: MigrationPlan): Promise<void> {
  for (const { node, labels } of nodes)
    if (Object.keys(labels).length > 0)
      await client.patch({ apiVersion: 'v1', kind: 'Node', name: node }, { metadata: { labels } }, { type: 'merge' })
  if (!isToEnable) return
  const spec = { controllers: { node: { hostEndpoint: { autoCreate: 'Enabled' } } } }
  try {
    await client.patch({ ...CONFIGURATION, name: 'default' }, { spec }, { type: 'merge' })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
    await client.create({ ...EMPTY_CONFIGURATION, spec })
  }
}

/** As they are then, or when the time is over. */
async function automaticEndpoints(client: ApiClient, timeoutMs: number): Promise<MigrationPlan> {
  const end = systemClock.now() + timeoutMs
  for (;;) {
    const plan = planMigration(await readMigration(client))
    if (plan.nodes.every(({ isReady }) => isReady) || systemClock.now() >= end) return plan
    await systemClock.sleep(LOOK_MS, new AbortController().signal)
  }
}

/** The one that was compared, and no other. */
async function remove(client: ApiClient, object: ApiObject): Promise<void> {
  const { uid = '', resourceVersion = '' } = object.metadata
  try {
    await client.delete(namedOf(object), { preconditions: { uid, resourceVersion } })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
  }
}

function problemsOf({ nodes, problems }: MigrationPlan): readonly string[] {
  const namesOf = ({ old }: NodePlan): string => old.map(({ metadata }) => metadata.name).join(', ')
  return [...problems, ...nodes.flatMap((one) => one.problems.map((text) => `${one.node} (${namesOf(one)}): ${text}`))]
}

interface Told {
  readonly plan: MigrationPlan
  /** what it has come to */
  readonly end: string
  readonly json: boolean
  readonly failed?: boolean
}

function result({ plan, end, json, failed = false }: Told): CommandResult {
  const problems = problemsOf(plan)
  const exitCode = failed ? 1 : 0
  const warnings = linesText(json ? [] : problems)
  if (json) {
    const nodes = plan.nodes.map(({ node, old, labels }) => ({ node, old: old.map(({ metadata }) => metadata.name), labels }))
    const record = { nodes, enables: plan.isToEnable, newNodes: plan.newNodes, problems, end }
    return { text: `${JSON.stringify(record, undefined, 1)}\n`, warnings, exitCode }
  }
  return { text: linesText([...(failed ? [] : stepsOf(plan)), end]), warnings, exitCode }
}

function stepsOf({ nodes, isToEnable, newNodes }: MigrationPlan): readonly string[] {
  const labelled = nodes.flatMap(({ node, labels }) => Object.entries(labels).map(([key, value]) => `node ${node}: label ${key}=${value}`))
  const deleted = nodes.flatMap(({ node, old }) => old.map(({ metadata }) => `node ${node}: delete host endpoint ${metadata.name}`))
  return [
    ...labelled,
    ...(isToEnable ? ['ControllersConfiguration default: autoCreate Enabled'] : []),
    ...(newNodes.length > 0 ? [`nodes that get one and had none, under the policies that select it: ${newNodes.join(', ')}`] : []),
    ...deleted,
  ]
}

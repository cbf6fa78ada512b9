// SPDX-License-Identifier: Apache-2.0
/** `upgrade plan`, `upgrade run` and `upgrade back`. Layer: cli. */
import { join } from 'node:path'
import { listOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { packageRoot, packageVersion } from '#lib/base/os/package.ts'
import { OPERATOR_GROUP, OPERATOR_VERSION } from '#lib/kube/operator-resources.ts'
import { FIELD_MANAGER } from '#operator/objects/owned-fields.ts'
import { MANAGED_BY } from '#lib/control/declared-managers.ts'
import { factsFromFiles } from '#upgrade/found/from-files.ts'
import { factsFromServer } from '#upgrade/found/from-server.ts'
import type { UpgradeFacts } from '#upgrade/found/facts.ts'
import { planUpgrade, type UpgradePlan } from '#upgrade/plan/plan.ts'
import { operatorIn, placeOf, upgradeSteps } from '#upgrade/plan/steps.ts'
import { back } from '#upgrade/storage/back.ts'
import { finishStep } from '#upgrade/storage/finish.ts'
import { StepFailedError } from '#upgrade/storage/options.ts'
import { startOperator } from '#upgrade/steps/stop-operator.ts'
import { RunLease, runIdentity } from '#upgrade/steps/run-lease.ts'
import { runSteps, type StepResult } from '#upgrade/steps/run-steps.ts'
import type { Step } from '#upgrade/steps/step.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { EXIT } from '../exit-codes.ts'
import { openCluster } from '../install/cluster.ts'
import { interrupted } from '../install/interrupted.ts'
import type { UpgradeBackOrder, UpgradePlanOrder, UpgradeRunOrder } from './order.ts'
import { refusalText, type Refusal } from '#upgrade/refusal.ts'
import { rightsRefusals } from '#upgrade/steps/rights.ts'
import { planLines, planRecord, resultLines } from './text.ts'

/** Exit code 1 while something is in the way. */
export async function upgradePlanCommand(order: UpgradePlanOrder): Promise<CommandResult> {
  const { resources, json } = order
  if (resources !== undefined)
    return planResult(planned(factsFromFiles(resources), { ...USUAL, client: new ApiClient({ server: NO_SERVER }) }), json)
  await using cluster = await openCluster(order)
  return planResult(planned(await factsFromServer(cluster.client, interrupted()), { ...USUAL, client: cluster.client }), json)
}

/** Exit code 1 where something is in the way, or a step stopped. */
export async function upgradeRunCommand(order: UpgradeRunOrder): Promise<CommandResult> {
  const { dryRun, json } = order
  await using cluster = await openCluster(order)
  const signal = interrupted()
  const { client } = cluster
  const rights = await rightsRefusals(client, signal)
  // an account that may not upgrade writes nothing, and is told all that is in the way
  if (dryRun || rights.length > 0) return await upgradeRun(order, { client, signal, rights })
  const lease = await RunLease.take({ client, clock: systemClock, identity: runIdentity() }, signal)
  if (!(lease instanceof RunLease)) return refusedResult([lease], json)
  await using held = lease
  return await upgradeRun(order, { client, signal: AbortSignal.any([signal, held.lost]), rights, lease: held })
}

interface Running {
  readonly client: ApiClient
  readonly signal: AbortSignal
  /** what the account may not */
  readonly rights: readonly Refusal[]
  /** undefined: nothing is to be written */
  readonly lease?: RunLease
}

async function upgradeRun(order: UpgradeRunOrder, { client, signal, rights, lease }: Running): Promise<CommandResult> {
  const { finish, json, timeoutMs, chart = USUAL.chart, connection } = order
  const facts = await factsFromServer(client, signal)
  const { plan: first, steps } = planned(facts, { ...USUAL, client, chart, timeoutMs, kubeconfig: connection.kubeconfig })
  const plan = { ...first, refusals: [...first.refusals, ...rights] }
  if (plan.refusals.length > 0 || plan.found === undefined) return planResult({ plan, steps }, json)
  const open = finish ? (await lookedAt(steps, signal)).filter(({ outcome }) => outcome !== 'before') : []
  if (open.length > 0) return runResult(plan, [notDone(open)], { json, isDry: lease === undefined })
  const all = finish ? [finishStep({ client, clock: systemClock, ...placeOf(plan.found), version: plan.version })] : steps
  if (lease === undefined) return runResult(plan, await lookedAt(all, signal), { json, isDry: true })
  const results = await runSteps({
    clock: systemClock,
    steps: all,
    signal,
    tell: ({ name, about }, text) => process.stderr.write(text === '' ? `${name}: ${about}\n` : `  ${text}\n`),
    before: (running) => lease.ensure(running),
  })
  const warnings = plan.found.method === 'manifest' || signal.aborted ? [] : await unavailable(client, signal)
  return runResult(plan, results, { json, isDry: false, warnings })
}

/** What the operator says of components that are not well, or not yet. An upgrade does not wait for it. */
async function unavailable(client: ApiClient, signal: AbortSignal): Promise<readonly string[]> {
  const statuses = await listOrNone(client, { apiVersion: `${OPERATOR_GROUP}/${OPERATOR_VERSION}`, kind: 'NetplaneStatus' }, { signal })
  return statuses.flatMap(({ metadata: { name }, status }) => {
    const found = objectsIn(fieldsOf(status)['conditions']).find(({ type }) => type === 'Available')
    if (found?.['status'] === 'True') return []
    return [`NetplaneStatus ${name} is not Available: ${textOf(found?.['reason'])}: ${textOf(found?.['message'])}`]
  })
}

/** Exit code 1 where it is too late, or an owner was not found. */
export async function upgradeBackCommand(order: UpgradeBackOrder): Promise<CommandResult> {
  await using cluster = await openCluster(order)
  const asked = interrupted()
  const { client } = cluster
  const refusals = await rightsRefusals(client, asked)
  if (refusals.length > 0) return refusedResult(refusals, false)
  const lease = await RunLease.take({ client, clock: systemClock, identity: runIdentity() }, asked)
  if (!(lease instanceof RunLease)) return refusedResult([lease], false)
  await using held = lease
  return await upgradeBack(client, AbortSignal.any([asked, held.lost]))
}

async function upgradeBack(client: ApiClient, signal: AbortSignal): Promise<CommandResult> {
  const facts = await factsFromServer(client, signal)
  const { plan } = planned(facts, { ...USUAL, client })
  if (plan.found === undefined) return planResult({ plan, steps: [] }, false)
  const tell = (text: string): void => void process.stderr.write(`${text}\n`)
  try {
    const left = await back({ client, clock: systemClock, ...placeOf(plan.found), version: plan.version }, signal, tell)
    if (await startOperator({ client, operator: operatorIn(facts), version: plan.version }, signal)) tell('the operator is started again')
    const lines = ['What the older version stored is in use again.', ...left.map((reason) => `  not so: ${reason}`)]
    return { text: linesText(lines), warnings: '', exitCode: left.length > 0 ? 1 : 0 }
  } catch (thrown) {
    const reason: unknown = signal.aborted ? signal.reason : thrown
    if (!(reason instanceof StepFailedError)) throw thrown
    return { text: linesText(['stopped at back:', ...reason.reasons.map((text) => `  ${text}`)]), warnings: '', exitCode: 1 }
  }
}

/** Of `--finish`: the backup goes when there is nothing else to do. */
function notDone(open: readonly StepResult[]): StepResult {
  const names = open.map(({ name }) => name).join(', ')
  return { name: 'finish', outcome: 'stopped', problems: [`the upgrade is not done, as ${names} shows: run it without --finish`] }
}

interface Planned {
  readonly plan: UpgradePlan
  readonly steps: readonly Step[]
}

type Ways = Omit<Parameters<typeof upgradeSteps>[0], 'facts' | 'plan'>

const USUAL = {
  clock: systemClock,
  operator: { manager: FIELD_MANAGER, labels: { [MANAGED_BY]: FIELD_MANAGER, 'app.kubernetes.io/part-of': 'netplane' } },
  chart: join(packageRoot(), 'deploy/chart'),
  kubeconfig: undefined,
  timeoutMs: 0,
} as const

/** Steps that are planned from files are told, and never run. */
const NO_SERVER: ApiServer = {
  ...{ protocol: 'https:', host: 'files', port: 443, prefix: '' },
  tls: () => Promise.reject(new InternalError('files have no server')),
  headers: () => Promise.reject(new InternalError('files have no server')),
}

function planned(facts: UpgradeFacts, ways: Ways): Planned {
  const plan = planUpgrade({ facts, version: packageVersion(), now: systemClock.wall() })
  return { plan, steps: upgradeSteps({ ...ways, facts, plan }) }
}

async function lookedAt(steps: readonly Step[], signal: AbortSignal): Promise<readonly StepResult[]> {
  const results: StepResult[] = []
  for (const { name, look } of steps) {
    const { isDone, problems, left = [] } = await look(signal)
    results.push({ name, outcome: isDone ? 'before' : problems.length > 0 ? 'stopped' : 'done', problems, left })
  }
  return results
}

function planResult({ plan, steps }: Planned, json: boolean): CommandResult {
  const text = json ? `${JSON.stringify(planRecord(plan, steps), undefined, 2)}\n` : linesText(planLines(plan, steps))
  return { text, warnings: '', exitCode: plan.refusals.length > 0 ? 1 : 0 }
}

/** Before anything was planned. */
function refusedResult(refusals: readonly Refusal[], json: boolean): CommandResult {
  const text = json
    ? `${JSON.stringify({ refusals }, undefined, 2)}\n`
    : linesText(['in the way:', ...refusals.map((one) => `  ${refusalText(one)}`), 'Nothing is done while something is in the way.'])
  return { text, warnings: '', exitCode: EXIT.failed }
}

interface How {
  readonly json: boolean
  readonly isDry: boolean
  /** what is not well, though the upgrade is at its end */
  readonly warnings?: readonly string[]
}

function runResult(plan: UpgradePlan, results: readonly StepResult[], { json, isDry, warnings = [] }: How): CommandResult {
  const record = { from: plan.found?.version, to: plan.version, steps: results, warnings }
  const text = json ? `${JSON.stringify(record, undefined, 2)}\n` : linesText(resultLines(results, isDry))
  return { text, warnings: json ? '' : linesText(warnings), exitCode: results.some(({ outcome }) => outcome === 'stopped') ? 1 : 0 }
}

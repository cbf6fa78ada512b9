// SPDX-License-Identifier: Apache-2.0
/** What each compilation came to, told to log, health, metrics and the agent's pages. Layer: agent. */
import { isLogLevel, type RootLog } from '#lib/obs/log.ts'
import { isKubeProxy } from '#lib/model/pod.ts'
import type { Problem } from '#lib/store/source.ts'
import type { Resolved } from '../config/resolve.ts'
import type { Flows } from '../flows/flows.ts'
import type { NodeMoves } from '../dataplane/conntrack/node-moves.ts'
import type { HttpServers } from '../http/servers.ts'
import { NODE_ADDRESS, NODE_ADDRESS_FAMILY, NODE_KNOWN } from '../report/own-node.ts'
import type { RuleLimitReport } from '../report/rule-limits.ts'
import type { SyncLatency } from '../report/sync-latency.ts'
import { nodeMoves } from '../watch/node-events.ts'
import type { ClusterReports } from './cluster-side.ts'
import type { Compiled, CompileResult } from './desired-state.ts'
import type { AgentSource } from './sources.ts'

export interface ResultReports extends ClusterReports {
  /** this node's name */
  readonly node: string
  readonly placesOf: AgentSource['placesOf']
  readonly log: RootLog
  readonly http: HttpServers
  readonly latency: SyncLatency
  readonly moves: NodeMoves
  readonly ruleLimits: RuleLimitReport
  readonly flows: Flows
}

export function reportResult(
  { snapshot, objects, settings, missingNode, missingAddress, missingFamily, compiled }: CompileResult,
  to: ResultReports,
): void {
  to.policies.note(snapshot, objects)
  to.latency.note(objects ?? [])
  to.flows.note(snapshot, objects)
  to.moves.note(nodeMoves(objects ?? [], to.node))
  to.http.setProxy([...snapshot.podsOn(to.node)].some((pod) => isKubeProxy(pod) && !pod.terminating))
  if (settings !== undefined) reportSettings(settings, to)
  to.ownNode.note({ [NODE_KNOWN]: missingNode, [NODE_ADDRESS]: missingAddress, [NODE_ADDRESS_FAMILY]: missingFamily })
  if (compiled !== undefined) reportCompiled(compiled, to)
}

function reportSettings(settings: Resolved, to: ResultReports): void {
  const { config, rejected } = settings
  to.settings.note(settings)
  if (isLogLevel(config.logLevel)) to.log.setLevel(config.logLevel)
  to.http.configure(config)
  reportRefusals('configuration', { problems: rejected.map((one) => ({ rejected: one })), to })
}

function reportCompiled({ desired, conflicts, truncated, quotaExceeded }: Compiled, to: ResultReports): void {
  if (conflicts !== undefined) {
    reportRefusals('compiler', { problems: conflicts, to })
    to.apiServerPath.note(conflicts)
  }
  to.ruleLimits.note(truncated)
  to.policies.noteNoRoom(quotaExceeded)
  if (desired.node !== undefined) to.http.setHealthChecks(desired.node.healthChecks)
}

interface Refusals {
  readonly problems: readonly Omit<Problem, 'place'>[]
  readonly to: ResultReports
}

/** All that `by` refuses. */
function reportRefusals(by: string, { problems, to }: Refusals): void {
  const places = to.placesOf(problems.map(({ rejected }) => rejected))
  to.sources.noteRefusals(
    by,
    problems.map((one, at) => ({ place: places[at], ...one })),
  )
}

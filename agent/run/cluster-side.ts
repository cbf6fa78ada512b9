// SPDX-License-Identifier: Apache-2.0
/** What an agent has whatever its kernel can do: its source, what that wants of this node, its reports and pages.
 * Layer: agent. */
import { checkOwnFolder } from '#lib/base/os/own-folder.ts'
import { systemClock } from '#lib/base/clock.ts'
import { Health } from '#lib/obs/health.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { Store } from '#lib/store/store.ts'
import { PROXY_RULES } from '../dataplane/kube-proxy/handover.ts'
import { Pins } from '../dataplane/pins.ts'
import { ApplyLoop } from '../dataplane/reconcile/loop.ts'
import { conditionOf } from '../dataplane/reconcile/reconciler.ts'
import { HttpServers } from '../http/servers.ts'
import { ConfigReport } from '../report/config.ts'
import { OwnNodeReport } from '../report/own-node.ts'
import { PolicyReport } from '../report/policies.ts'
import { SourceReport } from '../report/sources.ts'
import { ApiServerPath } from './api-server-path.ts'
import { DesiredState } from './desired-state.ts'
import { localSettings } from './local-settings.ts'
import { agentRole, type AgentOptions } from './options.ts'
import { openSource, type AgentSource } from './sources.ts'
import { lastGoodFile } from './state-files.ts'

export interface ClusterSideOptions {
  readonly options: AgentOptions
  readonly log: RootLog
  /** of a rule list that programs look through */
  readonly blocks: number
}

export interface ClusterSide extends AsyncDisposable {
  readonly health: Health
  readonly reports: ClusterReports
  readonly pins: Pins
  readonly source: AgentSource
  readonly store: Store
  readonly desired: DesiredState
  /** marked by whatever changes; it runs once there is a data plane */
  readonly loop: ApplyLoop
  readonly http: HttpServers
}

export interface ClusterReports {
  readonly ownNode: OwnNodeReport
  readonly sources: SourceReport
  readonly policies: PolicyReport
  readonly settings: ConfigReport
  readonly apiServerPath: ApiServerPath
}

/** The source does not run yet. Throws ConfigError when there can be none. */
export async function openClusterSide({ options, log, blocks }: ClusterSideOptions): Promise<ClusterSide> {
  const { node } = options
  const health = startingHealth()
  checkOwnFolder(options.keepDir)
  const pins = ownPins(options.pinDir, log)
  const reports = clusterReports({ pins, health, log })
  const own = localSettings(options.config, process.env)
  const loop = new ApplyLoop(systemClock)
  const mark = (): void => {
    loop.mark()
  }
  const source = await openSource(options.origin, {
    ...{ node, lastGood: lastGoodFile(options.keepDir), log, onServers: mark },
    clearWay: (place) => {
      reports.apiServerPath.clear(place)
    },
  })
  const store = new Store({
    sources: [source.name],
    onChange: mark,
    onStatus: (name, status) => {
      reports.sources.note(name, status)
      reports.policies.noteSource(name, status)
    },
  })
  const desired = new DesiredState({ node, store, blocks, own, servers: () => source.servers?.() ?? [], ...agentRole(options) })
  const http = new HttpServers({
    ...{ options, health, log, ruleNames: () => desired.policy.ruleNames, more: reports.settings.pages },
    eligible: () => store.snapshot.nodes.get(node)?.leaving !== true,
  })
  http.configure(undefined)
  return { health, reports, pins, source, store, desired, loop, http, [Symbol.asyncDispose]: () => http[Symbol.asyncDispose]() }
}

function startingHealth(): Health {
  const health = new Health(() => systemClock.wall())
  for (const name of ['kernel', 'sources.synced', ...['programs', 'read-back', 'applied'].map(conditionOf)])
    health.expect(name, 'readiness')
  health.expect('apply.moves', 'liveness')
  health.expect(PROXY_RULES, 'none')
  return health
}

function clusterReports(of: { readonly pins: Pins; readonly health: Health; readonly log: RootLog }): ClusterReports {
  return {
    ownNode: new OwnNodeReport(of),
    sources: new SourceReport(of.health, of.log),
    policies: new PolicyReport(of),
    settings: new ConfigReport(of),
    apiServerPath: new ApiServerPath(of),
  }
}

/** Before anything is believed that is pinned. */
function ownPins(dir: string, log: RootLog): Pins {
  const pins = new Pins(dir, (foreign) => {
    log.warn({ ...foreign }, 'pins.rejected')
  })
  try {
    pins.disown()
  } catch (thrown) {
    // the data plane cannot be there either, and says so
    log.error({ error: thrown }, 'pins.check-failed')
  }
  return pins
}

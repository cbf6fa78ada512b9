// SPDX-License-Identifier: Apache-2.0
/** What an agent has whatever its kernel can do: its source, what that wants of this node, its reports and pages.
 * Layer: agent. */
import { checkOwnFolder } from '#lib/base/os/own-folder.ts'
import { lockable, type LockableApi } from '#lib/api/lockable.ts'
import { systemClock } from '#lib/base/clock.ts'
import { whyLocked } from '#lib/model/cluster-information.ts'
import { Health } from '#lib/obs/health.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { Store } from '#lib/store/store.ts'
import { PROXY_RULES } from '../dataplane/kube-proxy/handover.ts'
import { LEFTOVERS } from '../dataplane/leftovers/leftovers.ts'
import { endPortRedirects, redirectPorts } from '../dataplane/kube-proxy/port-redirects.ts'
import { Pins } from '../dataplane/pins.ts'
import { ApplyLoop } from '../dataplane/reconcile/loop.ts'
import { conditionOf } from '../dataplane/reconcile/reconciler.ts'
import { HttpServers } from '../http/servers.ts'
import { listeningPorts } from '../node/listening-ports.ts'
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
  /** undefined: there is no API server */
  readonly datastore: Datastore | undefined
  readonly store: Store
  readonly desired: DesiredState
  /** marked by whatever changes; it runs once there is a data plane */
  readonly loop: ApplyLoop
  readonly http: HttpServers
}

/** What is asked of the API server and written there, besides what the source reads. */
export interface Datastore {
  readonly api: LockableApi
  /** why objects of ours must not be written; undefined: they may */
  readonly whyLocked: () => string | undefined
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
  const datastore = source.client && datastoreOf(source.client, store)
  const desired = new DesiredState({ node, store, blocks, own, servers: () => source.servers?.() ?? [], ...agentRole(options) })
  const http = new HttpServers({
    ...{ options, health, log, ruleNames: () => desired.policy.ruleNames, more: reports.settings.pages },
    eligible: () => store.snapshot.nodes.get(node)?.leaving !== true,
    redirects: { set: redirectPorts, end: endPortRedirects },
    listening: listeningPorts,
  })
  http.begin()
  http.configure(undefined)
  const close = (): Promise<void> => http[Symbol.asyncDispose]()
  return { health, reports, pins, source, datastore, store, desired, loop, http, [Symbol.asyncDispose]: close }
}

/** Nothing is written before it is known whether it may be. */
function datastoreOf(client: LockableApi, store: Store): Datastore {
  const why = (): string | undefined => (store.synced ? whyLocked(store.snapshot) : 'whether the datastore is locked is not known yet')
  return { api: lockable(client, why), whyLocked: why }
}

function startingHealth(): Health {
  const health = new Health(() => systemClock.wall())
  for (const name of ['kernel', 'sources.synced', ...['programs', 'read-back', 'applied'].map(conditionOf)])
    health.expect(name, 'readiness')
  health.expect('apply.moves', 'liveness')
  for (const name of [PROXY_RULES, LEFTOVERS]) health.expect(name, 'none')
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

// SPDX-License-Identifier: Apache-2.0
/** The running agent, from top to bottom. Layer: agent. */
import { existsSync } from 'node:fs'
import { release } from 'node:os'
import { everyMs, systemClock } from '#lib/base/clock.ts'
import { checkOwnFolder } from '#lib/base/os/own-folder.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import type { Problem } from '#lib/store/source.ts'
import { Health } from '#lib/obs/health.ts'
import { isLogLevel, type RootLog } from '#lib/obs/log.ts'
import type { Metrics } from '#lib/obs/metrics.ts'
import { Store } from '#lib/store/store.ts'
import { FLOOR_BLOCKS, MOST_BLOCKS } from '../compile/policy/rules/rule-list.ts'
import { ApiServerPath } from './api-server-path.ts'
import { resyncTimers } from '../watch/resync-timers.ts'
import { ConfigReport } from '../report/config.ts'
import { defaultConfig, type Config } from '../config/config.ts'
import type { Resolved } from '../config/resolve.ts'
import { PROXY_RULES } from '../dataplane/kube-proxy/handover.ts'
import { isFloor } from '../dataplane/programs/objects.ts'
import { conditionOf } from '../dataplane/reconcile/reconciler.ts'
import { Pins } from '../dataplane/pins.ts'
import { trialRefusal } from '../dataplane/programs/trial.ts'
import type { Features } from '../dataplane/programs/kernel-features.ts'
import { isBelowFloor, packageObjects, tooOld, unsafeKernel } from '../node/facts.ts'
import { cniReadyFile, lastGoodFile } from './state-files.ts'
import type { Interfaces } from '../interfaces/table.ts'
import { leaveLostAddress, watchNodeEvents, nodeMoves, type NodeEvents } from '../watch/node-events.ts'
import { releaseHeap } from '../node/memory.ts'
import { PodOverlaySink } from '../cni/pod-overlay-sink.ts'
import { RuleLimitReport } from '../report/rule-limits.ts'
import { PodDiscovery } from '../pods/pod-discovery.ts'
import { agentRole, type AgentOptions } from './options.ts'
import { localSettings } from './local-settings.ts'
import { PolicyReport } from '../report/policies.ts'
import { Pods, type PodsOptions } from '../pods/pods.ts'
import { HttpServers } from '../http/servers.ts'
import { SourceReport } from '../report/sources.ts'
import { openSource, type ServerPlace } from './sources.ts'
import { SyncLatency } from '../report/sync-latency.ts'
import { nodeSink } from './node-sink.ts'
import { aborted, runTaskGroup, type Task } from './task-group.ts'
import { DesiredState, type CompileResult } from './desired-state.ts'
import { kernelFeatures, setUpDataplane, type DataplaneSetup } from './dataplane-setup.ts'

const SETTLED_MS = 5000
/** Condition: the sources have an object of this node. */
const NODE_KNOWN = 'node.known'

export interface RunOptions {
  readonly options: AgentOptions
  readonly log: RootLog
  /** ends the agent; the data plane goes on */
  readonly signal: AbortSignal
}

/** Resolves once the signal has aborted and everything is let go of. Rejects for a defect, or a machine on which
 * nothing can work. */
export async function runAgent({ options, log, signal }: RunOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const version = packageVersion()
  log.info({ version, kernel: release(), pid: process.pid }, 'agent.started')
  const health = startingHealth()
  const book = new SourceReport(health, log)
  const policies = new PolicyReport({ health, log })
  const settings = new ConfigReport({ health, log })
  const own = localSettings(options.config, process.env)
  /** what runs, once it does */
  const now: { wired?: DataplaneSetup; config?: Config; wanted?: DesiredState; life?: NodeEvents; cuts?: RuleLimitReport } = {}
  const onServers = (): void => {
    now.wired?.loop.mark()
  }
  checkOwnFolder(options.keepDir)
  const pins = ownPins(options.pinDir, log)
  const way = new ApiServerPath({ pins, health, log })
  const clearWay = (place: ServerPlace): void => {
    way.clear(place)
  }
  const lastGood = lastGoodFile(options.keepDir)
  const source = await openSource(options.origin, { node: options.node, lastGood, onServers, clearWay, log })
  const store = new Store({
    sources: [source.name],
    onChange: () => now.wired?.loop.mark(),
    onStatus: (name, status) => {
      book.note(name, status)
      policies.noteSource(name, status)
    },
  })
  const passes: Observe[] = []
  const syncs: Observe[] = []
  const metrics = async (): Promise<Metrics> => {
    const { agentMetrics } = await import('#agent/report/metrics.ts')
    return agentMetrics({
      node: options.node,
      version,
      store,
      book,
      sourceFacts: () => source.facts?.(),
      settings,
      showsProcess: () => now.config?.showsProcess !== false,
      policies,
      policySize: () => now.wanted?.policy.size,
      wired: () => now.wired,
      onPass: (observe) => passes.push(observe),
      onSync: (observe) => syncs.push(observe),
    })
  }
  const eligible = (): boolean => store.snapshot.nodes.get(options.node)?.leaving !== true
  const ruleNames = (): ReadonlyMap<number, string> => now.wanted?.policy.ruleNames ?? new Map<number, string>()
  const ports = stack.use(new HttpServers({ options, health, log, metrics, eligible, ruleNames, more: settings.pages }))
  ports.configure(undefined)
  const refuseAll = (by: string, problems: readonly Omit<Problem, 'place'>[]): void => {
    book.noteRefusals(
      by,
      problems.map((one) => ({ place: source.placeOf(one.rejected), ...one })),
    )
  }
  const configure = (resolved: Resolved): void => {
    const { config, rejected } = resolved
    settings.note(resolved)
    if (isLogLevel(config.logLevel)) log.setLevel(config.logLevel)
    ports.configure(config)
    now.config = config
    refuseAll(
      'configuration',
      rejected.map((one) => ({ rejected: one })),
    )
  }
  const { client: api } = source
  const wasReady = options.cni !== undefined && existsSync(cniReadyFile(options.cni.socket))
  const tellStatus: Task = async (stop) => {
    if (api === undefined) return await aborted(stop)
    const { statusOf } = await import('#agent/report/status.ts')
    const status = statusOf({
      ...{ api, node: options.node, daemonSet: options.daemonSet, version, clock: systemClock, store, book, policies, health, log },
      wasReady,
      cuts: () => now.cuts?.endpoints,
      wired: () => now.wired,
      config: () => now.config,
      duties: agentRole(options),
      firewalls: () => now.life?.firewalls() ?? [],
      byService: source.byService,
    })
    await runTaskGroup(
      stop,
      status.map(
        (one): Task =>
          (signal) =>
            one.run(signal),
      ),
    )
  }
  const features = kernelFeatures(log)
  const unsupported = await unsupportedKernel(features, options)
  if (unsupported !== undefined) {
    // the source, which would let go of it, never runs
    if (api !== undefined) stack.use(api)
    return await refuse({ why: unsupported, log, health, signal, tellStatus })
  }
  health.pass('kernel')
  const latency = new SyncLatency({ wall: () => systemClock.wall(), observe: toAll(syncs) })
  const blocks = isFloor(features) ? FLOOR_BLOCKS : MOST_BLOCKS
  if (blocks < MOST_BLOCKS) log.warn({ rules: blocks * RULES_PER_BLOCK, staged: 'not evaluated' }, 'policy.old-kernel')
  const cuts = new RuleLimitReport({ health, log, blocks })
  now.cuts = cuts
  const wanted = new DesiredState({
    node: options.node,
    store,
    blocks,
    own,
    servers: () => source.servers?.() ?? [],
    ...agentRole(options),
  })
  now.wanted = wanted
  const noteNode = nodeBook(health, log)
  const report = ({ objects, settings: resolved, missingNode, compiled }: CompileResult): void => {
    policies.note(store.snapshot, objects)
    latency.note(objects ?? [])
    now.wired?.moves.note(nodeMoves(objects ?? [], options.node))
    if (resolved !== undefined) configure(resolved)
    noteNode(missingNode)
    if (compiled === undefined) return
    const { desired, conflicts, truncated, quotaExceeded } = compiled
    if (conflicts !== undefined) {
      refuseAll('compiler', conflicts)
      way.note(conflicts)
    }
    cuts.note(truncated)
    policies.noteNoRoom(quotaExceeded)
    if (desired.node !== undefined) ports.setHealthChecks(desired.node.healthChecks)
  }
  const mayGrow = (): boolean => now.config?.flowTableGrows === true
  const cleansProxy = (): boolean | undefined => now.config?.cleansProxy
  const onSettled = (): void => {
    latency.settled()
  }
  const onInterfaces = (interfaces: Interfaces): void => {
    leaveLostAddress({ source, log }, interfaces)
  }
  const running = stack.use(
    setUpDataplane({
      options,
      pins,
      features,
      store,
      wanted,
      log,
      health,
      report,
      onPass: toAll(passes),
      onSettled,
      mayGrow,
      cleansProxy,
      onInterfaces,
    }),
  )
  now.wired = running
  const storeSink = store.sink(source.name)
  const attached = new PodOverlaySink(options.node, storeSink)
  const pods = podsOf({ options, attached, store, log, health, wired: () => now.wired, config: () => now.config, api })
  if (pods !== undefined) passes.push(() => pods.news())
  now.life = watchNodeEvents({ source, wired: running, log, health, features, config: () => now.config ?? defaultConfig })
  const { interfaces } = running.monitor
  const found = stack.use(new PodDiscovery({ attached, store, interfaces, config: () => now.config, clock: systemClock, log }))
  const sink = nodeSink({
    sink: storeSink,
    pods: attached,
    beforeSynced: () => {
      found.look()
    },
  })
  await runTaskGroup(signal, [
    (stop) => source.run(sink, stop),
    (stop) => pods?.run(stop) ?? aborted(stop),
    (stop) => found.run(stop),
    tellStatus,
    ...now.life.tasks,
    // the next agent must find nothing half done
    (stop) => running.loop.run(stop).then(() => running.dataplane.current.finish()),
    ...[running.sweep, running.fill, running.moves, running.handOver].map(
      (one): Task =>
        (stop) =>
          one.run(stop),
    ),
    ...resyncTimers(running, { health, periods: () => (now.config ?? defaultConfig).periods }),
    (stop) => settleDown(running, log, stop),
  ])
  log.info({}, 'agent.stopped')
}

/** undefined: they are another plugin's */
function podsOf(options: Omit<PodsOptions, 'cni'>): Pods | undefined {
  const { cni } = options.options
  return cni && new Pods({ ...options, cni })
}

type Observe = (seconds: number) => void

/** Calls all observers that are there at the time of the event. */
function toAll(observers: readonly Observe[]): Observe {
  return (seconds) => {
    for (const observe of observers) observe(seconds)
  }
}

function startingHealth(): Health {
  const health = new Health(() => systemClock.wall())
  for (const name of ['kernel', 'sources.synced', ...['programs', 'read-back', 'applied'].map(conditionOf)])
    health.expect(name, 'readiness')
  health.expect('apply.moves', 'liveness')
  // without it nothing is applied, and that makes the node unready; when it goes later, what was applied stays
  health.expect(NODE_KNOWN, 'none')
  health.expect(PROXY_RULES, 'none')
  return health
}

/** Says whether this node's own object is in the sources. */
function nodeBook(health: Health, log: RootLog): (missing: string | undefined) => void {
  let before: string | undefined
  let asked = false
  return (missing) => {
    if (asked && missing === before) return
    asked = true
    if (missing === undefined) health.pass(NODE_KNOWN)
    else health.fail(NODE_KNOWN, missing)
    if (missing !== undefined) log.warn({ reason: missing }, 'node.missing')
    else if (before !== undefined) log.info({}, 'node.found')
    before = missing
  }
}

/** Before anything is believed that is pinned. */
function ownPins(dir: string, log: RootLog): Pins {
  const pins = new Pins(dir, (foreign) => {
    log.warn({ ...foreign }, 'pins.foreign')
  })
  try {
    pins.disown()
  } catch (thrown) {
    // the data plane cannot be there either, and says so
    log.error({ error: thrown }, 'pins.unusable')
  }
  return pins
}

interface Refusing extends Pick<RunOptions, 'log' | 'signal'> {
  readonly why: string
  readonly health: Health
  /** that this is so */
  readonly tellStatus: Task
}

/** Why programs cannot run here; undefined: as far as can be told before they are attached, they can. */
async function unsupportedKernel(features: Features, options: AgentOptions): Promise<string | undefined> {
  const unsafe = unsafeKernel()
  if (unsafe !== undefined || !isBelowFloor()) return unsafe
  const refusal = await trialRefusal(options.objects ?? packageObjects(), features)
  return refusal === undefined ? undefined : tooOld(refusal)
}

/** Stays up to be asked, and touches nothing. */
async function refuse({ why, log, health, signal, tellStatus }: Refusing): Promise<void> {
  health.fail('kernel', `${why}: the node's networking is left as it was found`)
  log.error({ kernel: release(), why }, 'kernel.unsupported')
  await tellStatus(signal)
}

/** Once, some time after the start is over. */
async function settleDown({ dataplane }: DataplaneSetup, log: RootLog, stop: AbortSignal): Promise<void> {
  const over = new AbortController()
  const either = AbortSignal.any([stop, over.signal])
  await everyMs(systemClock, {
    ms: SETTLED_MS,
    signal: either,
    run: () => {
      if (!dataplane.isReady) return
      over.abort()
      const released = releaseHeap()
      if (released !== undefined) log.info(released, 'memory.released')
    },
  })
}

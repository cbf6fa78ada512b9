// SPDX-License-Identifier: Apache-2.0
/** What an agent has where the kernel runs our programs: its data plane, pods, and what watches over the node.
 * Layer: agent. */
import { everyMs, systemClock } from '#lib/base/clock.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { defaultConfig, type Config } from '../config/config.ts'
import type { Features } from '../dataplane/programs/kernel-features.ts'
import { releaseHeap } from '../node/memory.ts'
import { DatastoreReport } from '../report/datastore.ts'
import { RuleLimitReport } from '../report/rule-limits.ts'
import { SyncLatency } from '../report/sync-latency.ts'
import { watchNodeEvents } from '../watch/node-events.ts'
import { watchTunnel } from '../watch/tunnel/watch-tunnel.ts'
import { resyncTimers } from '../watch/resync-timers.ts'
import type { ClusterSide } from './cluster-side.ts'
import type { AgentSource } from './sources.ts'
import { setUpDataplane, type DataplaneSetup } from './dataplane-setup.ts'
import { setUpFlows } from './flows-setup.ts'
import type { NodeKernel } from './node-kernel.ts'
import type { AgentOptions } from './options.ts'
import { passOf } from './pass.ts'
import { setUpPods } from './pods-setup.ts'
import { serveMetrics } from './serve-metrics.ts'
import { taskOf, type Task } from '#lib/base/async/task-group.ts'
import { tellStatus } from './tell-status.ts'

const SETTLED_MS = 5000

export interface NodeSideOptions {
  readonly options: AgentOptions
  readonly log: RootLog
  readonly cluster: ClusterSide
  readonly kernel: NodeKernel
  readonly features: Features
  /** of a rule list that programs look through */
  readonly blocks: number
}

export interface NodeSide extends Disposable {
  /** all that runs, the source included */
  readonly tasks: readonly Task[]
}

/** Nothing runs yet but the interface table. Throws the addon's errors. */
export function openNodeSide(of: NodeSideOptions): NodeSide {
  const { options, log, cluster, kernel, features, blocks } = of
  const { health, reports, source, http } = cluster
  const { node } = options
  using stack = new DisposableStack()
  const ruleLimits = new RuleLimitReport({ health, log, blocks })
  const running = stack.use(setUpDataplane(of))
  const { flows, tasks: flowTasks } = setUpFlows({ options, cluster, dataplane: running.dataplane, log })
  const pods = stack.use(setUpPods({ options, cluster, running, log }))
  const config = (): Config => reports.settings.config ?? defaultConfig
  const events = watchNodeEvents({ source, running, log, health, features, config, run: kernel.run })
  const passes: Observe[] = [() => pods.news()]
  const syncs: Observe[] = []
  serveMetrics({ cluster, node, running, flows, onPass: (observe) => passes.push(observe), onSync: (observe) => syncs.push(observe) })
  const latency = new SyncLatency({ wall: () => systemClock.wall(), observe: toAll(syncs) })
  const placesOf: AgentSource['placesOf'] = (fields) => source.placesOf(fields)
  const all = { ...reports, node, placesOf, log, http, latency, moves: running.moves, ruleLimits, flows }
  const pass = passOf({ cluster, running, reports: all, onPass: toAll(passes) })
  const tasks: Task[] = [
    (stop) => source.run(pods.sink, stop),
    ...pods.tasks,
    ...datastoreTasks(of),
    tellStatus({
      ...{ options, cluster, log, running, openPod: pods.openProofPod },
      ...{ cuts: () => ruleLimits.endpoints, firewalls: events.firewalls },
    }),
    ...events.tasks,
    watchTunnel({ node, cluster, dataplane: running.dataplane, wire: kernel.tunnelWire, config, log }),
    ...flowTasks,
    // the next agent must find nothing half done
    (stop) => running.loop.run(pass, stop).then(() => running.dataplane.current.finish()),
    ...[running.sweep, running.fill, running.moves, running.older, running.handOver, running.kept, running.leftovers].map(taskOf),
    ...resyncTimers(running, { health, periods: () => config().periods }),
    (stop) => settleDown(running, log, stop),
  ]
  const owned = stack.move()
  return { tasks, [Symbol.dispose]: () => owned[Symbol.dispose]() }
}

/** Where there is one that can be locked. */
function datastoreTasks({ options, log, cluster: { datastore, health, store } }: NodeSideOptions): readonly Task[] {
  if (datastore === undefined) return []
  return [taskOf(new DatastoreReport({ store, file: options.datastoreFile, clock: systemClock, health, log }))]
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

type Observe = (seconds: number) => void

/** Calls all observers that are there at the time of the event. */
function toAll(observers: readonly Observe[]): Observe {
  return (seconds) => {
    for (const observe of observers) observe(seconds)
  }
}

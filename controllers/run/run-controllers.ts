// SPDX-License-Identifier: Apache-2.0
/** The running controllers, from top to bottom. Layer: controllers. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import { everyMs, systemClock, type Clock } from '#lib/base/clock.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { ApiClient } from '#lib/api/client.ts'
import { whileSilent, type FindServer, type FoundServer } from '#lib/control/api-server.ts'
import { Lease } from '#lib/control/lease.ts'
import { PassLoop } from '#lib/control/pass-loop.ts'
import { CONTROLLERS_NAME } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { Health } from '#lib/obs/health.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { healthPages, metricsPages, pageServer } from '#lib/obs/pages.ts'
import { ClusterView } from './cluster-view.ts'
import { controllersMetrics } from './metrics.ts'
import type { ControllersOptions } from './options.ts'
import { ControllersPass } from './pass.ts'
import { LOOK_MS } from '../status/cluster-information.ts'

export interface RunOptions {
  readonly options: Omit<ControllersOptions, 'kubeconfig'>
  /** where the API server is asked; `tell`: why one is passed over */
  readonly server: (find: FindServer) => Promise<FoundServer>
  readonly log: RootLog
  /** ends the controllers; what they have made stays */
  readonly signal: AbortSignal
}

/** Kubelets report of every node again and again: what comes in this time is looked at together. */
const TOGETHER_MS = 500

/** Resolves once the signal has aborted and the Lease is given back. */
export async function runControllers({ options, server, log, signal }: RunOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { namespace, daemonSet, healthPort, metricsPort } = options
  const version = packageVersion()
  log.info({ version, pid: process.pid }, 'controllers.started')
  const clock = systemClock
  const health = new Health(() => clock.wall())
  health.expect('synced', 'readiness')
  // on the node's loopback address alone: the kubelet asks there
  if (healthPort !== 0) await stack.use(pageServer({ host: '127.0.0.1', port: healthPort, pages: healthPages(health) }, log)).start()
  const tell = (reason: string): void => {
    log.warn({ reason }, 'server.unreachable')
  }
  let found: FoundServer
  let client: ApiClient
  try {
    found = await server({ clock, tell, signal })
    client = stack.use(new ApiClient({ server: found.server }))
  } catch (thrown) {
    if (signal.aborted) return
    throw thrown
  }
  const identity = `${hostname()}_${randomUUID()}`
  const lease = new Lease({ client, clock, log, namespace, name: CONTROLLERS_NAME, identity, onSilent: whileSilent(found, client) })
  let isWaking = false
  const onChange = (): void => {
    if (isWaking) return
    isWaking = true
    clock.after(TOGETHER_MS, () => {
      isWaking = false
      loop.wake()
    })
  }
  const view: ClusterView = new ClusterView({ client, clock, log, onChange })
  const pass = new ControllersPass({ client, clock, log, view, namespace, daemonSet, version, mayAct: () => lease.isHeld })
  let observe: (seconds: number) => void = () => undefined
  const onPass = (seconds: number): void => {
    observe(seconds)
  }
  const loop: PassLoop = new PassLoop({ clock, log, health, view, lease, pass, onPass })
  if (metricsPort !== 0) {
    const metrics = controllersMetrics({
      version,
      isLeader: () => lease.isHeld,
      hostEndpointWrites: () => pass.endpoints.writes,
      blocksCollected: () => pass.collection.collected,
      onPass: (called) => {
        observe = called
      },
    })
    const pages = await metricsPages(() => Promise.resolve(metrics))
    await stack.use(pageServer({ host: undefined, port: metricsPort, pages }, log)).start()
  }
  await runTaskGroup(signal, [
    (stop) =>
      lease.run(stop, () => {
        loop.wake()
      }),
    (stop) => view.run(stop),
    (stop) => loop.run(stop),
    (stop) => wakeInTime(() => pass.everyMs, { clock, loop, signal: stop }),
  ])
  log.info({}, 'controllers.stopped')
}

const TICK_MS = 1000

interface Waking {
  readonly clock: Clock
  readonly loop: Pick<PassLoop, 'wake'>
  readonly signal: AbortSignal
}

/** How often may be another at any time. */
async function wakeInTime(periodMs: () => number, { clock, loop, signal }: Waking): Promise<void> {
  let wokenAt = clock.now()
  const run = (): void => {
    if (clock.now() - wokenAt < Math.min(periodMs(), LOOK_MS)) return
    wokenAt = clock.now()
    loop.wake()
  }
  await everyMs(clock, { ms: TICK_MS, signal, run })
}

// SPDX-License-Identifier: Apache-2.0
/** The running operator, from top to bottom. Layer: operator. */
import { hostname } from 'node:os'
import { randomUUID } from 'node:crypto'
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import { systemClock } from '#lib/base/clock.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { ApiClient } from '#lib/api/client.ts'
import type { Collection } from '#lib/api/resource.ts'
import { Health } from '#lib/obs/health.ts'
import { healthPages, metricsPages, pageServer } from '#lib/obs/pages.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { askedOnce, whileSilent, type FindServer, type FoundServer } from '#lib/control/api-server.ts'
import { ClusterView } from './cluster-view.ts'
import { installDefinitions } from './definitions.ts'
import { EndpointWatch } from './endpoint-watch.ts'
import { Lease } from '#lib/control/lease.ts'
import { operatorMetrics } from './metrics.ts'
import type { OperatorOptions } from './options.ts'
import { Pass } from './pass.ts'
import { PassLoop } from '#lib/control/pass-loop.ts'
import { findPlatformKinds } from './platform-kinds.ts'

export interface RunOptions {
  readonly options: Omit<OperatorOptions, 'kubeconfig'>
  /** where the API server is asked; `tell`: why one is passed over */
  readonly server: (find: FindServer) => Promise<FoundServer>
  readonly log: RootLog
  /** false: those that are there are enough */
  readonly bringsDefinitions?: boolean
  /** ends the operator; what it has installed goes on */
  readonly signal: AbortSignal
}

/** Resolves once the signal has aborted and the Lease is given back. */
export async function runOperator({ options, server, log, bringsDefinitions = true, signal }: RunOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const version = packageVersion()
  log.info({ version, pid: process.pid }, 'operator.started')
  const clock = systemClock
  const health = new Health(() => clock.wall())
  // on the node's loopback address alone: the kubelet asks there
  const healthPlace = { host: '127.0.0.1', port: options.healthPort, pages: healthPages(health) }
  if (options.healthPort !== 0) await stack.use(pageServer(healthPlace, log)).start()
  health.expect('definitions', 'readiness')
  health.expect('synced', 'readiness')
  const tell = (reason: string): void => {
    log.warn({ reason }, 'server.unreachable')
  }
  let found: FoundServer
  let client: ApiClient
  let moreKinds: readonly Collection[]
  try {
    found = await server({ clock, tell, signal })
    client = stack.use(new ApiClient({ server: found.server }))
    if (bringsDefinitions) await installDefinitions({ client, clock, log, version, signal })
    moreKinds = await findPlatformKinds({ client, clock, log, signal })
  } catch (thrown) {
    if (signal.aborted) return
    throw thrown
  }
  health.pass('definitions')
  const identity = `${hostname()}_${randomUUID()}`
  const lease = new Lease({
    client,
    clock,
    log,
    namespace: options.namespace,
    name: 'netplane-operator',
    identity,
    onSilent: whileSilent(found, client),
  })
  const view: ClusterView = new ClusterView({
    client,
    clock,
    log,
    namespace: options.namespace,
    systemNamespace: options.systemNamespace,
    moreKinds,
    onChange: () => {
      loop.wake()
    },
  })
  const endpoints = new EndpointWatch({
    clock,
    at: found.pod?.at,
    origin: () => client.transport.origin,
    ask: (at, stop) => askedOnce(at, undefined, stop),
    onChange: () => {
      loop.wake()
    },
  })
  const pass = new Pass({ client, clock, log, view, options, version, endpoints, mayAct: () => lease.isHeld })
  let observe: (seconds: number) => void = () => undefined
  const onPass = (seconds: number): void => {
    observe(seconds)
  }
  const loop: PassLoop = new PassLoop({ clock, log, health, view, lease, pass, onPass })
  if (options.metricsPort !== 0) {
    const metrics = operatorMetrics({
      version,
      isLeader: () => lease.isHeld,
      statuses: () => view.statuses.objects.values(),
      writes: () => pass.writes,
      onPass: (called) => {
        observe = called
      },
    })
    const pages = await metricsPages(() => Promise.resolve(metrics))
    await stack.use(pageServer({ host: undefined, port: options.metricsPort, pages }, log)).start()
  }
  await runTaskGroup(signal, [
    (stop) =>
      lease.run(stop, () => {
        loop.wake()
      }),
    (stop) => view.run(stop),
    (stop) => endpoints.run(stop),
    (stop) => loop.run(stop),
  ])
  log.info({}, 'operator.stopped')
}

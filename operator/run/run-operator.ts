// SPDX-License-Identifier: Apache-2.0
/** The running operator, from top to bottom. Layer: operator. */
import { hostname } from 'node:os'
import { randomUUID } from 'node:crypto'
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import { systemClock } from '#lib/base/clock.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { inCluster } from '#lib/api/connection/in-cluster.ts'
import { Health } from '#lib/obs/health.ts'
import { PageServer } from '#lib/obs/http.ts'
import { healthPages } from '#lib/obs/pages.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { ClusterView } from './cluster-view.ts'
import { installDefinitions } from './definitions.ts'
import { Lease } from './lease.ts'
import type { OperatorOptions } from './options.ts'
import { PassLoop } from './pass-loop.ts'

export interface RunOptions {
  readonly options: OperatorOptions
  readonly log: RootLog
  /** ends the operator; what it has installed goes on */
  readonly signal: AbortSignal
}

/** Resolves once the signal has aborted and the Lease is given back. */
export async function runOperator({ options, log, signal }: RunOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const version = packageVersion()
  log.info({ version, pid: process.pid }, 'operator.started')
  const server = options.kubeconfig === undefined ? inCluster() : fromKubeconfig(options.kubeconfig)
  const client = stack.use(new ApiClient({ server }))
  const clock = systemClock
  const health = new Health(() => clock.wall())
  if (options.healthPort !== 0) await stack.use(healthServer(options.healthPort, { health, log })).start()
  const identity = `${hostname()}_${randomUUID()}`
  const lease = new Lease({ client, clock, log, namespace: options.namespace, name: 'netplane-operator', identity })
  health.expect('definitions', 'readiness')
  health.expect('synced', 'readiness')
  try {
    await installDefinitions({ client, clock, log, signal })
  } catch (thrown) {
    if (signal.aborted) return
    throw thrown
  }
  health.pass('definitions')
  const view: ClusterView = new ClusterView({
    client,
    clock,
    log,
    namespace: options.namespace,
    systemNamespace: options.systemNamespace,
    onChange: () => {
      loop.wake()
    },
  })
  const loop: PassLoop = new PassLoop({ client, clock, log, health, view, lease, options, version })
  await runTaskGroup(signal, [
    (stop) =>
      lease.run(stop, () => {
        loop.wake()
      }),
    (stop) => view.run(stop),
    (stop) => loop.run(stop),
  ])
  log.info({}, 'operator.stopped')
}

/** On the node's loopback address alone: the kubelet asks there. */
function healthServer(port: number, { health, log }: { readonly health: Health; readonly log: RootLog }): PageServer {
  return new PageServer({
    host: '127.0.0.1',
    port,
    pages: healthPages(health),
    onError: (path, error) => {
      log.error({ path, error }, 'health.failed')
    },
  })
}

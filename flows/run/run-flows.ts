// SPDX-License-Identifier: Apache-2.0
/** The running aggregator, from top to bottom. Layer: flows. */
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import { everyMs, systemClock } from '#lib/base/clock.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { healthPages, metricsPages, pageServer } from '#lib/obs/pages.ts'
import { Aggregator } from '../aggregator.ts'
import { GrpcServer } from '../grpc/server.ts'
import { RestServer } from '../rest/server.ts'
import type { Kept } from '../store/retention.ts'
import { FlowStore } from '../store/store.ts'
import { flowsMetrics } from './metrics.ts'
import type { FlowsOptions } from './options.ts'

export interface RunOptions {
  readonly options: FlowsOptions
  readonly log: Log
  readonly signal: AbortSignal
}

/** What comes can be asked for so much later. */
const FLUSH_MS = 1000
const RETAIN_MS = 300_000
/** Files of certificates are read so often. */
const RENEW_MS = 60_000
/** A window may change for so long after its end: nodes send totals at its end, and again what was lost on the way. */
const OPEN_SECONDS = 120

/** Resolves once the signal has aborted and all is written. */
export async function runFlows({ options, log, signal }: RunOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const clock = systemClock
  log.info({ version: packageVersion(), pid: process.pid }, 'flows.started')
  const health = new Health(() => clock.wall())
  health.expect('store', 'readiness')
  const healthPlace = { host: '127.0.0.1', port: options.healthPort, pages: healthPages(health) }
  if (options.healthPort !== 0) await stack.use(pageServer(healthPlace, log)).start()
  const store = stack.use(await FlowStore.open({ ...options, clock, openSeconds: OPEN_SECONDS }))
  const aggregator = new Aggregator({ store, log, wall: () => clock.wall(), signal })
  let kept: Kept | undefined
  let forgotten = 0
  const retain = async (): Promise<void> => {
    kept = await store.retain()
    forgotten += kept.forgottenBySize
    log.info({ ...kept, keys: store.keyCount }, 'store.kept')
  }
  await retain()
  if (options.metricsPort !== 0) {
    const metrics = flowsMetrics({
      count: aggregator.count,
      nodes: () => aggregator.nodes,
      collectors: () => aggregator.collectors,
      followers: () => aggregator.feed.followers,
      keys: () => store.keyCount,
      openRows: () => store.openRows,
      kept: () => kept,
      forgotten: () => forgotten,
    })
    const pages = await metricsPages(() => Promise.resolve(metrics))
    await stack.use(pageServer({ host: undefined, port: options.metricsPort, pages }, log)).start()
  }
  const grpc = stack.use(new GrpcServer(aggregator, options.tls))
  const grpcPort = await grpc.start(options.host, options.grpcPort)
  const httpPort = await stack.use(new RestServer(aggregator)).start('127.0.0.1', options.httpPort)
  const renew = (): void => {
    try {
      grpc.renew()
    } catch (thrown) {
      log.warn({ error: thrown }, 'certificates.not-renewed')
    }
  }
  health.pass('store')
  log.info({ grpcPort, httpPort }, 'flows.listening')
  // what cannot be written is not kept: a new process begins with what is in the file, and nodes tell the rest again
  await runTaskGroup(signal, [
    (stop) => everyMs(clock, { ms: FLUSH_MS, signal: stop, run: () => store.flush() }),
    (stop) => everyMs(clock, { ms: RENEW_MS, signal: stop, run: renew }),
    (stop) => everyMs(clock, { ms: RETAIN_MS, signal: stop, run: retain }),
  ])
  log.info({}, 'flows.stopped')
}

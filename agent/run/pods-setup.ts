// SPDX-License-Identifier: Apache-2.0
/** How this node's pods get their veths and become known: by CNI, or by looking for what another plugin made.
 * Layer: agent. */
import { systemClock } from '#lib/base/clock.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Sink } from '#lib/store/source.ts'
import { PodOverlaySink } from '../cni/pod-overlay-sink.ts'
import { defaultConfig } from '../config/config.ts'
import { PodDiscovery } from '../pods/pod-discovery.ts'
import { Pods } from '../pods/pods.ts'
import type { ClusterSide } from './cluster-side.ts'
import type { DataplaneSetup } from './dataplane-setup.ts'
import { nodeSink } from './node-sink.ts'
import type { AgentOptions } from './options.ts'
import { taskOf, type Task } from '#lib/base/async/task-group.ts'

export interface PodsSetupOptions {
  readonly options: AgentOptions
  readonly cluster: ClusterSide
  readonly running: Pick<DataplaneSetup, 'dataplane' | 'monitor'>
  readonly log: Log
}

export interface PodsSetup extends Disposable {
  /** where the source's events go */
  readonly sink: Sink
  /** A pass is over. */
  news(): void
  readonly tasks: readonly Task[]
}

export function setUpPods({ options, cluster, running, log }: PodsSetupOptions): PodsSetup {
  const { health, reports, source, store } = cluster
  const { dataplane, monitor } = running
  const { cni } = options
  const sink = store.sink(source.name)
  const attached = new PodOverlaySink(options.node, sink)
  // without it pods are another plugin's
  const pods =
    cni &&
    new Pods({
      options,
      cni,
      attached,
      store,
      log,
      health,
      dataplane,
      interfaces: monitor.changed,
      config: () => reports.settings.config,
      api: source.client,
    })
  const discovery = new PodDiscovery({
    ...{ attached, store, interfaces: monitor.interfaces, clock: systemClock, log },
    config: () => reports.settings.config ?? defaultConfig,
  })
  return {
    sink: nodeSink({ sink, pods: attached, beforeSynced: () => discovery.look() }),
    news: () => pods?.news(),
    tasks: [discovery, ...(pods === undefined ? [] : [pods])].map(taskOf),
    [Symbol.dispose]: () => discovery[Symbol.dispose](),
  }
}

// SPDX-License-Identifier: Apache-2.0
/** How this node's pods get their veths and become known: by CNI, or by looking for what another plugin made.
 * Layer: agent. */
import { systemClock } from '#lib/base/clock.ts'
import { NotYetError } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Sink } from '#lib/store/source.ts'
import { PodOverlaySink } from '../cni/pod-overlay-sink.ts'
import { defaultConfig } from '../config/config.ts'
import { PodDiscovery } from '../pods/pod-discovery.ts'
import { OTHERS_PODS } from '../pods/proof-pod.ts'
import { Pods } from '../pods/pods.ts'
import type { PodClient } from '../proof/node-mode.ts'
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
  /** To ask services from. Rejects with the reason where there can be none. */
  readonly openProofPod: (signal: AbortSignal) => Promise<PodClient>
  readonly tasks: readonly Task[]
}

export function setUpPods({ options, cluster, running, log }: PodsSetupOptions): PodsSetup {
  const { health, reports, source, datastore, store } = cluster
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
      sink,
      store,
      log,
      health,
      dataplane,
      held: () => monitor.interfaces.all().flatMap(({ addresses }) => addresses.map(({ addr }) => addr)),
      interfaces: monitor.changed,
      config: () => reports.settings.config,
      datastore,
    })
  const discovery = new PodDiscovery({
    ...{ attached, store, interfaces: monitor.interfaces, clock: systemClock, log },
    config: () => reports.settings.config ?? defaultConfig,
  })
  return {
    sink: nodeSink({ sink, pods: attached, beforeSynced: () => discovery.look() }),
    news: () => pods?.news(),
    openProofPod: (signal) => (pods === undefined ? Promise.reject(new NotYetError(OTHERS_PODS)) : pods.openProofPod(signal)),
    tasks: [discovery, ...(pods === undefined ? [] : [pods])].map(taskOf),
    [Symbol.dispose]: () => discovery[Symbol.dispose](),
  }
}

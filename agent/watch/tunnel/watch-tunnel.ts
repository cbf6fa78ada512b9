// SPDX-License-Identifier: Apache-2.0
/** The task that asks this node's peers whether the tunnel's packets arrive. Layer: agent. */
import type { Task } from '#lib/base/async/task-group.ts'
import { systemClock } from '#lib/base/clock.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Config } from '../../config/config.ts'
import type { ClusterSide } from '../../run/cluster-side.ts'
import type { DataplaneSetup } from '../../run/dataplane-setup.ts'
import { asksToo } from './asks-too.ts'
import { TunnelProbe, type TunnelWire } from './probe.ts'

export interface WatchTunnelOptions {
  /** this node's name */
  readonly node: string
  readonly cluster: Pick<ClusterSide, 'health' | 'http' | 'store'>
  readonly dataplane: Pick<DataplaneSetup['dataplane'], 'isReady' | 'tunnelWay'>
  readonly wire: TunnelWire
  readonly config: () => Config
  readonly log: Log
}

export function watchTunnel({ node, cluster, dataplane, wire, config, log }: WatchTunnelOptions): Task {
  const { health, http, store } = cluster
  const probe = new TunnelProbe({
    ...{ clock: systemClock, log, health, wire, node },
    way: () => (dataplane.isReady ? dataplane.tunnelWay : undefined),
    nodes: () => store.snapshot.nodes,
    asksToo: (peer) => asksToo(peer, config().proxyHealthPort),
    onAsking: (asks) => {
      http.setProbes(asks)
    },
    random: () => Math.random(),
  })
  return (stop) => probe.run(stop)
}

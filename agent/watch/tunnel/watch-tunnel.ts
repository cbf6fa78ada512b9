// SPDX-License-Identifier: Apache-2.0
/** The task that asks this node's peers whether the tunnel's packets arrive. Layer: agent. */
import type { Task } from '#lib/base/async/task-group.ts'
import { systemClock } from '#lib/base/clock.ts'
import { hasHostEndpoint } from '#lib/model/policy.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
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

/** How probes leave; undefined: none may. Host rules apply to probes, but not to the tunnel's own packets. On a node
 * with a HostEndpoint a denied probe would look like a loss. */
export function probeWay(
  { isReady, tunnelWay }: WatchTunnelOptions['dataplane'],
  { hostEndpoints }: Pick<Snapshot, 'hostEndpoints'>,
  node: string,
): WatchTunnelOptions['dataplane']['tunnelWay'] {
  return isReady && !hasHostEndpoint(hostEndpoints.values(), node) ? tunnelWay : undefined
}

export function watchTunnel({ node, cluster, dataplane, wire, config, log }: WatchTunnelOptions): Task {
  const { health, http, store } = cluster
  const probe = new TunnelProbe({
    ...{ clock: systemClock, log, health, wire, node },
    way: () => probeWay(dataplane, store.snapshot, node),
    nodes: () => store.snapshot.nodes,
    asksToo: (peer) => asksToo(peer, config().proxyHealthPort),
    onAsking: (asks) => {
      http.setProbes(asks)
    },
    random: () => Math.random(),
  })
  return (stop) => probe.run(stop)
}

// SPDX-License-Identifier: Apache-2.0
/** The demo's cluster as the place where losses are counted: its service, and the load on it. Layer: bench (pure). */
import type { Load } from '../../lab/traffic/load.ts'
import type { Endpoint } from '../../lab/tools/address.ts'

/** below the package's root */
export const RESOURCES = 'demo/manifests'
export const NODES = ['node-a', 'node-b'] as const
/** the client inside the cluster, on node-a */
export const POD = 'default/shell-a'

const PROTOS = ['udp', 'tcp'] as const
/** From outside to a node port of the node without the backend, and from a pod to the cluster address. */
const WAYS = [
  { from: 'client', addresses: ['172.30.0.1', 'fd00:30::1'], port: 30080 },
  { from: POD, addresses: ['10.96.0.80', 'fd00:96::80'], port: 80 },
] as const

/** Eight streams of 200 messages a second, and 40 new connections or exchanges a second by each of the ways, family
 * by family. */
export const LOAD: Load = {
  flows: WAYS.map(({ from, addresses, port }) => ({
    from,
    to: addresses.flatMap((address) => PROTOS.map((proto) => ({ proto, address, port }))),
  })),
  requests: WAYS.flatMap(({ from, addresses, port }) =>
    addresses.map((address) => ({ from, to: { proto: 'tcp' as const, address, port }, rate: 20 })),
  ),
}

/** The only backend: web-1, on node-b. */
export const BACKEND = tcp('10.244.2.11', 8080)
export const BACKEND_NODE = '172.30.0.2'
export const CLUSTER_IP = tcp('10.96.0.80', 80)
export const NODE_PORT_LOCAL = tcp('172.30.0.2', 30080)
export const NODE_PORT_REMOTE = tcp('172.30.0.1', 30080)

function tcp(address: string, port: number): Endpoint {
  return { proto: 'tcp', address, port }
}

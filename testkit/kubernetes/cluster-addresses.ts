// SPDX-License-Identifier: Apache-2.0
/** Ranges and addresses of a test cluster, by the families that it has. Layer: testkit (pure). */

export type Families = 'both' | 'IPv6'

/** Where there are several, IPv4 comes first. */
export interface ClusterAddresses {
  readonly podCidrs: readonly string[]
  readonly serviceCidrs: readonly string[]
  /** of the service kube-dns */
  readonly dns: string
  /** of the API server: one after the other */
  readonly servers: readonly string[]
  readonly nodes: Readonly<Record<string, readonly string[]>>
}

/** Every test cluster has a network to itself. */
const BOTH: ClusterAddresses = {
  podCidrs: ['10.244.0.0/16', 'fd00:244::/56'],
  serviceCidrs: ['10.96.0.0/16', 'fd00:96::/112'],
  dns: '10.96.0.10',
  servers: ['172.31.0.2', '172.31.0.3'],
  nodes: { a: ['172.31.0.11', 'fd00:31::11'], b: ['172.31.0.12', 'fd00:31::12'], c: ['172.31.0.13', 'fd00:31::13'] },
}

/** Nothing has an address of IPv4 but loopback devices. */
const IPV6: ClusterAddresses = {
  podCidrs: BOTH.podCidrs.filter(isV6),
  serviceCidrs: BOTH.serviceCidrs.filter(isV6),
  dns: 'fd00:96::a',
  servers: ['fd00:31::2', 'fd00:31::3'],
  nodes: Object.fromEntries(Object.entries(BOTH.nodes).map(([node, addresses]) => [node, addresses.filter(isV6)])),
}

/** Names of all nodes that a cluster may have. */
export const NODES = Object.keys(BOTH.nodes)

export function clusterAddresses(families: Families): ClusterAddresses {
  return families === 'both' ? BOTH : IPV6
}

/** Of a cluster whose nodes have these addresses. */
export function familiesOf(nodeAddresses: readonly string[]): Families {
  return nodeAddresses.every(isV6) ? 'IPv6' : 'both'
}

/** Also of a prefix. */
export function isV6(text: string): boolean {
  return text.includes(':')
}

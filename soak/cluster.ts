// SPDX-License-Identifier: Apache-2.0
/** The cluster that is soaked: the nodes of its pods, and the services with a promise. Layer: soak (pure). */
import { addressOf, FAMILIES, felixObject, nodeObject, NODES, podObject, type Family } from '../testkit/lab/manifests.ts'
import { SENDERS, SINKS } from './marks/marked-flows.ts'

export { NODES }

/** Pods that answer for as long as the soak lasts. */
export const ANCHORS = ['a-1', 'b-1', 'c-1'] as const
export const OTHERS = ['a-2', 'b-2', 'c-2'] as const
/** They are made deaf when their service leaves them. */
export const MOVERS = ['a-3', 'b-3', 'c-3'] as const
/** They come and go with their namespaces. */
export const VISITORS = ['a-9', 'b-9', 'c-9'] as const
const SHELLS = ['shell-a', 'shell-b'] as const
/** Pods that policies call by name; visitors too, when they are there. */
export const LASTING: readonly string[] = [...ANCHORS, ...OTHERS, ...MOVERS, ...SHELLS, ...SENDERS, ...SINKS]

/** What changes about them. */
export interface ClusterNow {
  readonly felix: object
  readonly visitors: readonly string[]
  /** of pods, besides their names */
  readonly labels: Readonly<Record<string, object>>
}

/** Numbers of the services, by which they have names, addresses and node ports. */
export const SERVICE = {
  /** its first endpoints stay ready or leave gracefully: flows to them lose nothing */
  calm: 1,
  /** anything happens to it, but its first endpoints answer: open connections lose nothing */
  held: 2,
  /** its only endpoint dies and another takes over: UDP flows are there within a second */
  moving: 3,
  /** changes with the configuration, so that one can see that both have arrived */
  marker: 4,
  /** no promise but that the maps are right */
  firstWild: 10,
} as const
export const WILD = 12

/** Nodes, pods and configuration. */
export function clusterObjects(now: ClusterNow): object[] {
  const pods = [...LASTING, ...now.visitors].map((name) => {
    const labels = { who: name, ...now.labels[name] }
    return podObject(name, { metadata: { labels } })
  })
  return [...NODES.map((name) => nodeObject(name)), ...pods, felixObject(now.felix)]
}

/** A node that is in manifests only: its address and ranges are rows on the others. */
export function phantomNode(last: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'phantom' },
    spec: { podCIDRs: ['10.29.4.0/24', 'fd00:2900:4::/64'] },
    status: {
      addresses: [`172.29.0.${last}`, `fd00:29::${last}`].map((address) => ({ type: 'InternalIP', address })),
    },
  }
}

/** Its pods' pool, one of each family. No other pod has an address there. */
export function phantomPools(vxlanMode: string, natOutgoing: boolean): object[] {
  return ['10.29.4.0/22', 'fd00:2900:4::/62'].map((cidr, index) => ({
    apiVersion: 'netplane.io/v3',
    kind: 'IPPool',
    metadata: { name: `phantom-${index}` },
    spec: { cidr, vxlanMode, natOutgoing },
  }))
}

export function podAddress(pod: string, family: Family): string {
  return addressOf(pod, family)
}

export { FAMILIES }

// SPDX-License-Identifier: Apache-2.0
/** Stored blocks, and the pods and nodes that go with them, as tests want them. Layer: test. */
import { parseCidr } from '#lib/base/ip.ts'
import { rangeSize } from '#lib/base/range.ts'
import type { Manifest } from '../../support/build.ts'
import { namesOf, raw } from './stored.ts'

export const NOW = Date.parse('2026-01-01T00:00:00Z')

/** Of an allocation: "shop/web on a" is a pod's, "tunnel of a" a node's, "?" one that says nothing. */
export type Given = string

export interface BlockSpec {
  readonly node?: string | undefined
  /** by the number of the address */
  readonly given?: Readonly<Record<number, Given>>
  /** the queue of free addresses; in their order unless the test gives another */
  readonly free?: readonly number[]
  readonly more?: Manifest
}

export function containerOf(pod: string): string {
  return `c-${pod.replace('/', '-')}`
}

export function block(cidr: string, { node, given = {}, free, more = {} }: BlockSpec): Manifest {
  const size = rangeSize(parseCidr(cidr))
  const held = Object.keys(given).map(Number)
  const all = Array.from({ length: size }, (_, at) => at)
  const spec = {
    cidr,
    affinity: node === undefined ? null : node.includes(':') ? node : `host:${node}`,
    allocations: all.map((at) => (held.includes(at) ? held.indexOf(at) : null)),
    attributes: held.map((at) => attributes(given[at] ?? '')),
    unallocated: free ?? all.filter((at) => !held.includes(at)),
    strictAffinity: false,
    ...more,
  }
  return raw('IPAMBlock', cidr.replaceAll(/[.:/]/g, '-'), { spec })
}

function attributes(given: Given): Manifest {
  const [, pod, node] = /^(\S+) on (\S+)$/.exec(given) ?? []
  if (pod !== undefined && node !== undefined) {
    const { namespace = 'default', name } = namesOf(pod)
    return { handle_id: `k8s-pod-network.${containerOf(pod)}`, secondary: { node, pod: name, namespace } }
  }
  const [, tunnel] = /^tunnel of (\S+)$/.exec(given) ?? []
  if (tunnel !== undefined) return { handle_id: `vxlan-tunnel-addr-${tunnel}`, secondary: { node: tunnel, type: 'vxlanTunnelAddress' } }
  if (given.startsWith('service ')) return { handle_id: 'lb-x', secondary: { service: given.slice(8), namespace: 'shop' } }
  return { handle_id: null, secondary: null }
}

export function affinity(node: string, cidr: string, of: Manifest = {}): Manifest {
  return raw('BlockAffinity', `${node}-${cidr.replaceAll(/[.:/]/g, '-')}`, {
    spec: { cidr, node, state: 'confirmed', deleted: 'false', ...of },
  })
}

/** "shop/web", with its addresses and the container that the old plugin wrote down. */
export function pod(name: string, node: string, ...addresses: readonly string[]): Manifest {
  const { namespace, name: own } = namesOf(name)
  const [podIP] = addresses
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name: own, annotations: { 'cni.netplane.io/containerID': containerOf(name) } },
    spec: { nodeName: node },
    status: { phase: 'Running', ...(podIP !== undefined && { podIP, podIPs: addresses.map((ip) => ({ ip })) }) },
  }
}

export function node(name: string, ...podCIDRs: readonly string[]): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { podCIDRs },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
  }
}

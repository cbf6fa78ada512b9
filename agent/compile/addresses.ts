// SPDX-License-Identifier: Apache-2.0
/** Pods and nodes → what the data plane must know about their addresses. Layer: agent/compile (pure). */
import { ADDR_LOCAL_POD, ADDR_MASQUERADE, ADDR_NODE, ADDR_NODE_PORTS, ADDR_ROUTED, ADDR_SELF } from '#lib/base/bpf-constants.ts'
import { isWithin, parseAddr } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import type { Node } from '#lib/model/node.ts'
import { interfaceOf, isFinished, isOurs } from '#lib/model/pod.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { AddrRow } from './desired.ts'
import { isMasqueraded } from './pools.ts'
import type { PodPools } from './pools.ts'
import { compareAddrs } from './row-keys.ts'

/** True when the pod has, or is about to have, a veth of its own on the node. */
export function isLocalWorkload(pod: Pod, node: string): boolean {
  return pod.nodeName === node && !pod.hostNetwork && !isFinished(pod)
}

export interface PodPlace extends PodPools {
  readonly interfacePrefix: string
  /** false: another program makes ways between nodes, and sees what passes between pods and the network */
  readonly makesRoutes: boolean | undefined
}

/** A local pod's addresses, reached through its veth. */
export function podAddrs(pod: Pod, { interfacePrefix, makesRoutes, ...pools }: PodPlace): readonly AddrRow[] {
  const iface = interfaceOf(pod, interfacePrefix)
  const routed = isOurs(pod, interfacePrefix) && makesRoutes !== false ? 0 : ADDR_ROUTED
  return addrRows(pod.podIPs, (addr) => ({
    kind: ADDR_LOCAL_POD,
    flags: (isMasqueraded(pools, addr) ? ADDR_MASQUERADE : 0) | routed,
    iface,
  }))
}

/** Another node's addresses. */
export function otherNodeAddrs(node: Node): readonly AddrRow[] {
  return addrRows(node.addresses, () => ({ kind: ADDR_NODE, flags: 0, iface: undefined }))
}

const LOOPBACK = [parseAddr('127.0.0.1'), parseAddr('::1')]

/** This node's addresses: those the cluster knows, those its interfaces have, and loopback's, where its own
 * processes reach node ports. `nodePorts`: where these are served; empty: everywhere. */
export function selfAddrs(addresses: readonly Addr[], nodePorts: readonly Cidr[]): readonly AddrRow[] {
  return addrRows([...addresses, ...LOOPBACK], (addr) => ({
    kind: ADDR_SELF,
    flags: nodePorts.length === 0 || isWithin(nodePorts, addr) ? ADDR_NODE_PORTS : 0,
    iface: undefined,
  }))
}

function addrRows(addrs: readonly Addr[], valueOf: (addr: Addr) => AddrRow['value']): readonly AddrRow[] {
  return [...new Set(addrs)].map((addr): AddrRow => ({ table: 'addrs', key: { addr }, value: valueOf(addr) })).sort(compareAddrs)
}

// SPDX-License-Identifier: Apache-2.0
/** Pods and nodes → what the data plane must know about their addresses. Layer: agent/compile (pure). */
import type { Addr } from '#lib/base/ip.ts'
import type { Node } from '#lib/model/node.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { AddrRow } from './desired.ts'
import { ADDR_LOCAL_POD, ADDR_NODE, ADDR_SELF } from '#lib/base/flags.ts'
import { compareAddrs } from './rows.ts'

/** True when the pod has, or is about to have, a veth of its own on the node. */
export function isLocalWorkload(pod: Pod, node: string): boolean {
  return pod.nodeName === node && !pod.hostNetwork && (pod.phase === 'Running' || pod.phase === 'Pending')
}

/** A local pod's addresses, reached through its veth. */
export function podAddrs(pod: Pod, interfacePrefix: string): readonly AddrRow[] {
  const iface = workloadInterface(pod, interfacePrefix)
  return addrRows(pod.podIPs, { kind: ADDR_LOCAL_POD, iface })
}

/** Another node's addresses. */
export function otherNodeAddrs(node: Node): readonly AddrRow[] {
  return addrRows(node.addresses, { kind: ADDR_NODE, iface: undefined })
}

/** This node's addresses: those the cluster knows, and those its interfaces have. */
export function selfAddrs(node: Node | undefined, selfAddresses: readonly Addr[]): readonly AddrRow[] {
  return addrRows([...(node?.addresses ?? []), ...selfAddresses], { kind: ADDR_SELF, iface: undefined })
}

function addrRows(addrs: readonly Addr[], value: AddrRow['value']): readonly AddrRow[] {
  return [...new Set(addrs)].map((addr): AddrRow => ({ table: 'addrs', key: { addr }, value })).sort(compareAddrs)
}

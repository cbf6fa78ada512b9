// SPDX-License-Identifier: Apache-2.0
/** What measuring paths ends in. Layer: bench (pure). */
import type { Interval } from '../base/statistics.ts'

/** kube-proxy in this mode, and the kernel's own tunnel device */
export const PEERS = ['iptables', 'nftables', 'vxlan'] as const
export type Peer = (typeof PEERS)[number]
/** plain: no service, no NAT, no conntrack, no tunnel; the others do the same job in their own ways. */
export type Contender = 'plain' | 'netplane' | Peer

/** How the cluster is set up. usual: the network knows all pods. dsr: nodes with the backend answer clients
 * themselves. overlay: pods of other nodes are reached in a tunnel. */
export const SETTINGS = ['usual', 'dsr', 'overlay'] as const
export type Setting = (typeof SETTINGS)[number]

/** As in latest.json, in the order of tables. `_wire`: with packets on the wire of 1,500 bytes, `_wire_9000`: of 9,000,
 * which the receiving node merges. */
export const MEASURES = [
  ...(['rr_p50', 'crr_p50', 'pps', 'tput', 'cpu_per_gbit'] as const),
  ...(['tput_wire', 'cpu_per_gbit_wire', 'tput_wire_9000', 'cpu_per_gbit_wire_9000'] as const),
] as const
export type Measure = (typeof MEASURES)[number]

export interface RatioFigure {
  readonly path: string
  readonly contender: Contender
  readonly measure: Measure
  /** median of the rounds' ratios to the plain path */
  readonly ratio: number
  readonly interval: Interval
  /** the contender itself, for people: ns, packets a second, bits a second, or ns a bit */
  readonly absolute: number
}

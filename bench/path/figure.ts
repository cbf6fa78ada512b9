// SPDX-License-Identifier: Apache-2.0
/** What measuring paths ends in. Layer: bench (pure). */
import type { Interval } from '../base/statistics.ts'

/** kube-proxy in this mode */
export const PEERS = ['iptables', 'nftables'] as const
/** plain: no service, no NAT, no conntrack; the others do the same job in their own ways. */
export type Contender = 'plain' | 'netplane' | (typeof PEERS)[number]

/** As in latest.json. Of the first two and the last less is better, of the others more. */
export type Measure = 'rr_p50' | 'crr_p50' | 'pps' | 'tput' | 'cpu_per_gbit'

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

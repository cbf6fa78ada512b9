// SPDX-License-Identifier: Apache-2.0
/** A range of addresses that one node gives to its pods: their holders, and those lately freed. Layer: lib/model. */
import type { Cidr } from '../base/ip.ts'

/** Whose an address is. */
export interface Holder {
  readonly namespace: string
  readonly pod: string
  /** the sandbox: a pod that is made again is another holder */
  readonly containerId: string
}

/** Replaced, never changed. Indexes count from the block's first address. */
export interface IPBlock {
  readonly cidr: Cidr
  readonly node: string
  readonly held: ReadonlyMap<number, Holder>
  /** when addresses were given back, in ms since 1970 */
  readonly freed: ReadonlyMap<number, number>
}

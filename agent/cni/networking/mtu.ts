// SPDX-License-Identifier: Apache-2.0
/** How long a pod's packets may be. Layer: agent/cni (pure). */
import { isV4, type Addr } from '#lib/base/ip.ts'

export interface Underlay {
  /** of the devices that lead to the other nodes */
  readonly mtus: readonly number[]
  /** other nodes' pods are reached in the tunnel */
  readonly overlay: boolean
}

/** What the tunnel puts in front, by the family of the nodes' addresses, which is that of the pods'. */
export const TUNNEL_BYTES = { v4: 50, v6: 70 } as const
const USUAL = 1500
/** What each family needs of a device; programs answer what does not fit a way after that. */
export const LEAST_MTU = { v4: 68, v6: 1280 } as const

export function leastMtu(addresses: readonly Addr[]): number {
  return addresses.every(isV4) ? LEAST_MTU.v4 : LEAST_MTU.v6
}

export function podMtu({ mtus, overlay }: Underlay, addresses: readonly Addr[]): number {
  const underlay = mtus.length === 0 ? USUAL : Math.min(...mtus)
  const tunnel = !overlay ? 0 : addresses.every(isV4) ? TUNNEL_BYTES.v4 : TUNNEL_BYTES.v6
  return Math.max(leastMtu(addresses), underlay - tunnel)
}

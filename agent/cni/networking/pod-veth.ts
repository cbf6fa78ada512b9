// SPDX-License-Identifier: Apache-2.0
/** A pod's veth, and what is the same of each. Layer: agent/cni (pure). */
import { sha1 } from '#lib/base/hash.ts'
import { isV4, type Addr } from '#lib/base/ip.ts'

export interface PodVeth {
  /** the sandbox that it is made for: written on the node's end */
  readonly containerId: string
  /** name of the node's end */
  readonly host: string
  /** file of the pod's network namespace */
  readonly netns: string
  /** name of the pod's end */
  readonly ifname: string
  readonly mtu: number
  readonly addresses: readonly Addr[]
}

/** The same in every run, and another one at each end. */
export function macOf({ host }: Pick<PodVeth, 'host'>, end: 'node' | 'pod'): string {
  const digits = sha1(`${host} ${end}`)
  // unicast, given by hand
  return ['02', ...[0, 2, 4, 6, 8].map((at) => digits.slice(at, at + 2))].join(':')
}

export function familiesOf({ addresses }: Pick<PodVeth, 'addresses'>): readonly ('v4' | 'v6')[] {
  return [...(addresses.some(isV4) ? ['v4' as const] : []), ...(addresses.some((addr) => !isV4(addr)) ? ['v6' as const] : [])]
}

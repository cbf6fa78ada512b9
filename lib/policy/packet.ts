// SPDX-License-Identifier: Apache-2.0
/** What policy sees of a packet. Layer: lib/policy (pure). */
import type { Addr } from '../base/ip.ts'

export interface Packet {
  readonly src: Addr
  readonly dst: Addr
  /** IP protocol number */
  readonly protocol: number
  /** 0 where the protocol has no ports */
  readonly sport: number
  readonly dport: number
  /** of ICMP and ICMPv6 only */
  readonly icmp: { readonly type: number; readonly code: number } | undefined
}

export const TCP = 6
export const UDP = 17
export const SCTP = 132
export const ICMP = 1
export const ICMPV6 = 58

/** Protocols whose ports rules can ask for. */
export function hasPorts(protocol: number): boolean {
  return protocol === TCP || protocol === UDP || protocol === SCTP
}

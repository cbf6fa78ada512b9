// SPDX-License-Identifier: Apache-2.0
/** A question whose ends are known → its packets. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { isV4, protocolNumber, type Addr } from '#lib/base/ip.ts'
import { ICMP, ICMPV6, type Packet } from '#lib/policy/packet.ts'
import type { Query } from './query.ts'

const ECHO_V4 = 8
const ECHO_V6 = 128

export interface Ends {
  readonly sources: readonly Addr[]
  readonly destinations: readonly Addr[]
  readonly sport: number
  readonly dport: number
}

/** One for each family that both ends have. Throws ConfigError where there is none. */
export function packetsBetween({ protocol, icmp, from, to }: Query, { sources, destinations, sport, dport }: Ends): readonly Packet[] {
  const packets = [true, false].flatMap((v4): Packet[] => {
    const [src, dst] = [sources, destinations].map((addrs) => addrs.find((addr) => isV4(addr) === v4))
    if (src === undefined || dst === undefined) return []
    if (protocol !== 'icmp') return [{ src, dst, sport, dport, protocol: numberOf(protocol), icmp: undefined }]
    const message = icmp ?? { type: v4 ? ECHO_V4 : ECHO_V6, code: 0 }
    return [{ src, dst, sport, dport: 0, protocol: v4 ? ICMP : ICMPV6, icmp: message }]
  })
  if (packets.length === 0) throw new ConfigError(`${from.text} > ${to.text}`, 'have no address of the same family')
  return packets.sort((a, b) => sources.indexOf(a.src) - sources.indexOf(b.src))
}

function numberOf(protocol: 'tcp' | 'udp' | 'sctp'): number {
  return protocolNumber(protocol === 'tcp' ? 'TCP' : protocol === 'udp' ? 'UDP' : 'SCTP')
}

// SPDX-License-Identifier: Apache-2.0
/** What policy sees of a packet → a flow's first packet with all that, or a TCP segment with other flags, as bytes.
 * Layer: test. */
import { formatAddr, hostPort } from '#lib/base/ip.ts'
import { ICMP, ICMPV6, SCTP, TCP, UDP, hasPorts } from '#lib/policy/packet.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { icmp, plain, tcp, udp } from '../../testkit/packets/packet.ts'

/** Of a ping: both ports of its flow. */
export const ECHO_ID = 7

export function bytesOf(packet: Packet, flags = 'S'): Uint8Array {
  const [src, dst] = [formatAddr(packet.src), formatAddr(packet.dst)]
  const [from, to] = [hostPort(src, packet.sport), hostPort(dst, packet.dport)]
  switch (packet.protocol) {
    case TCP:
      return tcp(from, to, { flags })
    case UDP:
      return udp(from, to)
    case ICMP:
    case ICMPV6:
      return packet.icmp === undefined
        ? plain(src, dst, { proto: packet.protocol })
        : icmp(src, dst, { ...packet.icmp, word: ECHO_ID << 16, protocol: packet.protocol })
    case SCTP:
      return plain(src, dst, { proto: SCTP, body: Uint8Array.of(...word(packet.sport), ...word(packet.dport), ...new Uint8Array(8)) })
    default:
      return plain(src, dst, { proto: packet.protocol })
  }
}

/** The flow's ports, as programs know it: echoes have their id in both, what has no ports has none. */
export function portsOf(
  { protocol, sport, dport, icmp: message }: Packet,
  v4: boolean,
): { readonly sport: number; readonly dport: number } {
  if (hasPorts(protocol)) return { sport, dport }
  const id = message !== undefined && (v4 ? [0, 8] : [128, 129]).includes(message.type) ? ECHO_ID : 0
  return { sport: id, dport: id }
}

/** Types of ICMP: messages about another packet, and answers to another message. */
const TYPES = { v4: { errors: [3, 11, 12], answers: [0, 14, 16, 18] }, v6: { errors: [1, 2, 3, 4], answers: [129, 140] } }

/** Is the packet let in without a flow, where rules allow it? Programs read either ICMP in either family. */
export function opensNothing({ protocol, icmp: message }: Packet, v4: boolean): boolean {
  if (message === undefined) return false
  const { errors, answers } = v4 ? TYPES.v4 : TYPES.v6
  return answers.includes(message.type) || (protocol === (v4 ? ICMP : ICMPV6) && errors.includes(message.type))
}

function word(value: number): readonly number[] {
  return [value >> 8, value & 0xff]
}

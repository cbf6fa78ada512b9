// SPDX-License-Identifier: Apache-2.0
/** A flow's first packet as an Ethernet frame. Layer: cli (pure). */
import { addrBytes, isV4 } from '#lib/base/ip.ts'
import { ICMP, ICMPV6, SCTP, TCP, UDP, type Packet } from '#lib/policy/packet.ts'

export interface FrameOf {
  readonly packet: Packet
  /** of an echo, which has no ports */
  readonly echoId: number
  /** "02:00:00:00:00:01": the device's own */
  readonly mac: string
}

const TTL = 64
const SYN = 2

export function frame({ packet, echoId, mac }: FrameOf): Uint8Array {
  const body = bodyOf(packet, echoId)
  const header = isV4(packet.src) ? headerV4(packet, body.length) : headerV6(packet, body.length)
  const ethernet = Uint8Array.from([...mac.split(':').map((part) => Number.parseInt(part, 16)), 2, 0, 0, 0, 0, 1, ...etherType(packet)])
  return Buffer.concat([ethernet, header, body])
}

function etherType({ src }: Packet): readonly number[] {
  return isV4(src) ? [0x08, 0x00] : [0x86, 0xdd]
}

function bodyOf(packet: Packet, echoId: number): Uint8Array {
  const { protocol, sport, dport, icmp } = packet
  switch (protocol) {
    case TCP: {
      const body = portsAnd(20, sport, dport)
      body.set([5 << 4, SYN, 0xff, 0xff], 12)
      return summed(packet, body, 16)
    }
    case UDP: {
      const body = portsAnd(8, sport, dport)
      new DataView(body.buffer).setUint16(4, body.length)
      return summed(packet, body, 6)
    }
    case SCTP:
      // common header and an INIT chunk; no program here checks its CRC
      return Uint8Array.from([...portsAnd(12, sport, dport), 1, 0, 0, 20, ...new Uint8Array(16)])
    default: {
      const body = new Uint8Array(8)
      body.set([icmp?.type ?? 0, icmp?.code ?? 0])
      new DataView(body.buffer).setUint16(4, echoId)
      return summed(packet, body, 2)
    }
  }
}

function portsAnd(length: number, sport: number, dport: number): Uint8Array<ArrayBuffer> {
  const body = new Uint8Array(length)
  const view = new DataView(body.buffer)
  view.setUint16(0, sport)
  view.setUint16(2, dport)
  return body
}

/** With its checksum, which covers the addresses except in ICMP of IPv4. */
function summed({ src, dst, protocol }: Packet, body: Uint8Array<ArrayBuffer>, at: number): Uint8Array {
  const pseudo = [...shortest(src), ...shortest(dst), 0, protocol, body.length >> 8, body.length & 255]
  const sum = checksum(protocol === ICMP ? body : Uint8Array.from([...pseudo, ...body]))
  new DataView(body.buffer).setUint16(at, sum === 0 && protocol === UDP ? 0xffff : sum)
  return body
}

function shortest(addr: Packet['src']): Uint8Array {
  return isV4(addr) ? addrBytes(addr).subarray(12) : addrBytes(addr)
}

function headerV4({ src, dst, protocol }: Packet, length: number): Uint8Array {
  const total = 20 + length
  const header = Uint8Array.from([0x45, 0, total >> 8, total & 255, 0, 1, 0x40, 0, TTL, protocol, 0, 0, ...shortest(src), ...shortest(dst)])
  new DataView(header.buffer).setUint16(10, checksum(header))
  return header
}

function headerV6({ src, dst, protocol }: Packet, length: number): Uint8Array {
  return Uint8Array.from([
    0x60,
    0,
    0,
    0,
    length >> 8,
    length & 255,
    protocol === ICMP ? ICMPV6 : protocol,
    TTL,
    ...addrBytes(src),
    ...addrBytes(dst),
  ])
}

/** RFC 1071; of an even number of bytes. */
function checksum(bytes: Uint8Array): number {
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16)
  return ~sum & 0xffff
}

// SPDX-License-Identifier: Apache-2.0
/** What nodes send each other to find out whether the tunnel's packets arrive. Layer: agent (pure).
 *
 * To a VXLAN device of the kernel, and to a Netplane that runs, it is a packet without a network number, which both
 * drop. */
import { sha256Start } from '#lib/base/hash.ts'
import { addrFromBytes, formatAddr } from '#lib/base/ip.ts'
import type { Family } from './peers.ts'

export interface Hello {
  /** of the nodes, and of the run: packets of others and of before say nothing */
  readonly from: string
  readonly to: string
  readonly run: string
  /** the sender has heard the receiver */
  readonly heard: boolean
  /** the sender knows that the receiver has heard it, and asks for no answer */
  readonly known: boolean
}

/** Its flags say that there is no network number. */
const VXLAN_HEADER = 8
const MAGIC = Buffer.from('NPPF')
const VERSION = 1
const ID_BYTES = 8
const HEARD = 1
const KNOWN = 2
const IDS = VXLAN_HEADER + MAGIC.length + 4
const HELLO_BYTES = IDS + 3 * ID_BYTES

/** Names are of any length, and not for others. */
export function idOf(name: string): string {
  return sha256Start(name)
}

export function encodeHello({ from, to, run, heard, known }: Hello): Buffer {
  const bytes = Buffer.alloc(HELLO_BYTES)
  MAGIC.copy(bytes, VXLAN_HEADER)
  bytes.writeUInt8(VERSION, VXLAN_HEADER + MAGIC.length)
  bytes.writeUInt8((heard ? HEARD : 0) | (known ? KNOWN : 0), VXLAN_HEADER + MAGIC.length + 1)
  for (const [at, id] of [from, to, run].entries()) bytes.write(id, IDS + at * ID_BYTES, 'hex')
  return bytes
}

export interface Received {
  readonly hello: Hello
  readonly source: string
  readonly family: Family
}

/** From the IP header on. Undefined for anything else. */
export function decodePacket(packet: Buffer): Received | undefined {
  const version = (packet[0] ?? 0) >> 4
  const network = version === 4 ? ((packet[0] ?? 0) & 15) * 4 : 40
  const hello = decodeHello(packet.subarray(network + 8))
  if (hello === undefined) return undefined
  if (version === 4) return { hello, source: formatAddr(addrFromBytes(packet.subarray(12, 16))), family: 'IPv4' }
  return version === 6 ? { hello, source: formatAddr(addrFromBytes(packet.subarray(8, 24))), family: 'IPv6' } : undefined
}

/** A short frame may have bytes behind it. */
function decodeHello(bytes: Buffer): Hello | undefined {
  if (bytes.length < HELLO_BYTES || !bytes.subarray(VXLAN_HEADER, VXLAN_HEADER + MAGIC.length).equals(MAGIC)) return undefined
  if (bytes.readUInt8(VXLAN_HEADER + MAGIC.length) !== VERSION) return undefined
  const id = (at: number): string => bytes.toString('hex', IDS + at * ID_BYTES, IDS + (at + 1) * ID_BYTES)
  const flags = bytes.readUInt8(VXLAN_HEADER + MAGIC.length + 1)
  return { from: id(0), to: id(1), run: id(2), heard: (flags & HEARD) !== 0, known: (flags & KNOWN) !== 0 }
}

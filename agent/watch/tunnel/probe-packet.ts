// SPDX-License-Identifier: Apache-2.0
/** What agents send each other to learn whether the tunnel's packets arrive. Layer: agent (pure).
 *
 * On the wire it is a packet of the tunnel, but for a flag of the VXLAN header: programs of the other node give it to
 * the kernel, and the kernel drops it once the agent has seen it. Nothing answers: each node sends by its own clock. */
import { addrBytes, addrFromBytes, isV4, type Addr } from '#lib/base/ip.ts'

/** `plain` and `large` have the checksum that the tunnel's packets have, `summed` has one in any case. */
export const KINDS = ['plain', 'large', 'summed'] as const
export type Kind = (typeof KINDS)[number]

export interface Probe {
  readonly kind: Kind
  /** 16 hex digits, as `run`: names are of any length */
  readonly from: string
  readonly to: string
  /** of the sender's process: its rounds begin anew with each */
  readonly run: string
  readonly round: number
  /** bytes of the large one, with its IP header */
  readonly size: number
  /** what the sender misses of the receiver's */
  readonly misses: readonly Kind[]
}

/** Without the flag by which a VNI counts: programs leave such packets alone, and the kernel drops them. */
const PROBE_FLAGS = 0x01000000
/** IEEE: for local experiments */
const ETHERTYPE = 0x88b6
const VXLAN_BYTES = 8
const ETHERNET_BYTES = 14
const UDP_BYTES = 8
const UDP = 17
const MAGIC = Buffer.from('NPTP')
const VERSION = 1
const ID_BYTES = 8
const WORD = VXLAN_BYTES + ETHERNET_BYTES
const FIELDS = WORD + MAGIC.length
const IDS = FIELDS + 12
/** What follows the UDP header. */
const PROBE_BYTES = IDS + 3 * ID_BYTES

export interface Ends {
  readonly source: Addr
  readonly address: Addr
  readonly sourcePort: number
  readonly port: number
  /** the tunnel's packets have them */
  readonly hasChecksums: boolean
}

/** From the UDP header on. */
export function encodeProbe(probe: Probe, ends: Ends): Buffer {
  const network = isV4(ends.address) ? 20 : 40
  const length = probe.kind === 'large' ? probe.size - network : UDP_BYTES + PROBE_BYTES
  const packet = Buffer.alloc(Math.max(length, UDP_BYTES + PROBE_BYTES))
  packet.writeUInt16BE(ends.sourcePort, 0)
  packet.writeUInt16BE(ends.port, 2)
  packet.writeUInt16BE(packet.length, 4)
  writeProbe(probe, packet.subarray(UDP_BYTES))
  if (probe.kind === 'summed' || ends.hasChecksums) packet.writeUInt16BE(checksum(packet, ends), 6)
  return packet
}

function writeProbe({ kind, from, to, run, round, size, misses }: Probe, bytes: Buffer): void {
  bytes.writeUInt32BE(PROBE_FLAGS, 0)
  bytes.fill(2, VXLAN_BYTES, VXLAN_BYTES + 12)
  bytes.writeUInt16BE(ETHERTYPE, WORD - 2)
  MAGIC.copy(bytes, WORD)
  bytes.writeUInt8(VERSION, FIELDS)
  bytes.writeUInt8(KINDS.indexOf(kind), FIELDS + 1)
  bytes.writeUInt8(bitsOf(misses), FIELDS + 2)
  bytes.writeUInt16BE(size, FIELDS + 4)
  bytes.writeUInt32BE(round, FIELDS + 8)
  for (const [at, id] of [from, to, run].entries()) bytes.write(id, IDS + at * ID_BYTES, 'hex')
}

export interface ReceivedProbe {
  readonly probe: Probe
  readonly source: Addr
}

/** From the IP header on. Undefined for anything else. */
export function decodeProbe(packet: Buffer): ReceivedProbe | undefined {
  const isOld = (packet[0] ?? 0) >> 4 === 4
  const network = isOld ? ((packet[0] ?? 0) & 15) * 4 : 40
  const bytes = packet.subarray(network + UDP_BYTES)
  if (bytes.length < PROBE_BYTES || !bytes.subarray(WORD, FIELDS).equals(MAGIC)) return undefined
  const [version, number, bits] = [bytes.readUInt8(FIELDS), bytes.readUInt8(FIELDS + 1), bytes.readUInt8(FIELDS + 2)]
  const kind = KINDS[number]
  if (version !== VERSION || kind === undefined) return undefined
  const id = (at: number): string => bytes.toString('hex', IDS + at * ID_BYTES, IDS + (at + 1) * ID_BYTES)
  return {
    source: addrFromBytes(isOld ? packet.subarray(12, 16) : packet.subarray(8, 24)),
    probe: {
      ...{ kind, from: id(0), to: id(1), run: id(2) },
      round: bytes.readUInt32BE(FIELDS + 8),
      size: bytes.readUInt16BE(FIELDS + 4),
      misses: KINDS.filter((one) => (bits & bitsOf([one])) !== 0),
    },
  }
}

function bitsOf(kinds: readonly Kind[]): number {
  return kinds.reduce((bits, kind) => bits | (1 << KINDS.indexOf(kind)), 0)
}

/** UDP's checksum over the packet and its pseudo header. 0xffff stands for 0, which means that there is none. */
function checksum(packet: Buffer, { source, address }: Ends): number {
  const from = isV4(address) ? 12 : 0
  const whole = Buffer.concat([addrBytes(source).subarray(from), addrBytes(address).subarray(from), packet])
  let sum = UDP + packet.length
  for (let at = 0; at + 1 < whole.length; at += 2) sum += whole.readUInt16BE(at)
  if (whole.length % 2 === 1) sum += whole.readUInt8(whole.length - 1) << 8
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return ~sum & 0xffff || 0xffff
}

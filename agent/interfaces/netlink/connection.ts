// SPDX-License-Identifier: Apache-2.0
/** Connections as the kernel's own table (nf_conntrack) has them. Layer: agent/interfaces (pure). */
import { addrFromBytes, type Addr } from '#lib/base/ip.ts'
import { decodeAttributes, type Attributes } from './message.ts'

export const NETLINK_NETFILTER = 12
/** NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET */
export const GET_CONNECTIONS = 0x101

const HEADER = 4
const CTA_TUPLE_ORIG = 1
const CTA_TUPLE_REPLY = 2
const CTA_STATUS = 3
const CTA_PROTOINFO = 4
const CTA_ZONE = 18
const CTA_TUPLE_IP = 1
const CTA_TUPLE_PROTO = 2
const CTA_TUPLE_ZONE = 3
const CTA_PROTO_NUM = 1
const CTA_PROTO_SRC_PORT = 2
const CTA_PROTO_DST_PORT = 3
const CTA_PROTOINFO_TCP = 1
const CTA_PROTOINFO_TCP_STATE = 1
const CTA_PROTOINFO_TCP_FLAGS_ORIGINAL = 4

const IPS_ASSURED = 0x4
/** the source of either family's addresses; the destination is behind it */
const SOURCES = [1, 3]
const TCP = 6
/** established, and closed by one end or both but for the last acknowledgement */
const OPEN_STATES = [3, 4, 5]
/** The kernel does not check windows. It sets this flag where it has not seen the SYN of a connection. */
const BE_LIBERAL = 0x8

export interface Tuple {
  readonly src: Addr
  readonly dst: Addr
  readonly sport: number
  readonly dport: number
}

/** A TCP connection. The kernel has seen its SYN, and packets of both ends. */
export interface OpenConnection {
  /** packets of the end that opened it, before any translation */
  readonly sent: Tuple
  /** answers, before theirs */
  readonly answered: Tuple
}

/** Payload of a dump of both families. */
export function encodeConnectionDump(): Buffer {
  return Buffer.alloc(HEADER)
}

/** Undefined for all else: other protocols, other states, those that were picked up on their way, and those of a zone,
 * where another program may use the same addresses and ports for another connection. */
export function decodeConnection(payload: Buffer): OpenConnection | undefined {
  const attributes = decodeAttributes(payload.subarray(HEADER))
  const status = attributes.get(CTA_STATUS)
  if (status?.length !== 4 || (status.readUInt32BE() & IPS_ASSURED) === 0 || attributes.has(CTA_ZONE)) return undefined
  if (!isOpen(inside(inside(attributes, CTA_PROTOINFO), CTA_PROTOINFO_TCP))) return undefined
  const [sent, answered] = [CTA_TUPLE_ORIG, CTA_TUPLE_REPLY].map((type) => decodeTuple(inside(attributes, type)))
  return sent && answered && { sent, answered }
}

function inside(attributes: Attributes, type: number): Attributes {
  const bytes = attributes.get(type)
  return bytes === undefined ? new Map<number, Buffer>() : decodeAttributes(bytes)
}

function isOpen(tcp: Attributes): boolean {
  const [state, flags] = [tcp.get(CTA_PROTOINFO_TCP_STATE), tcp.get(CTA_PROTOINFO_TCP_FLAGS_ORIGINAL)]
  return OPEN_STATES.includes(state?.[0] ?? 0) && ((flags?.[0] ?? BE_LIBERAL) & BE_LIBERAL) === 0
}

function decodeTuple(tuple: Attributes): Tuple | undefined {
  const [ip, proto] = [inside(tuple, CTA_TUPLE_IP), inside(tuple, CTA_TUPLE_PROTO)]
  const type = SOURCES.find((one) => ip.has(one)) ?? 0
  const [src, dst] = [ip.get(type), ip.get(type + 1)]
  const [sport, dport] = [proto.get(CTA_PROTO_SRC_PORT), proto.get(CTA_PROTO_DST_PORT)]
  if (tuple.has(CTA_TUPLE_ZONE) || proto.get(CTA_PROTO_NUM)?.[0] !== TCP || sport?.length !== 2 || dport?.length !== 2) return undefined
  if (!isAddr(src) || !isAddr(dst)) return undefined
  return { src: addrFromBytes(src), dst: addrFromBytes(dst), sport: sport.readUInt16BE(), dport: dport.readUInt16BE() }
}

function isAddr(bytes: Buffer | undefined): bytes is Buffer {
  return bytes?.length === 4 || bytes?.length === 16
}

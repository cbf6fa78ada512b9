// SPDX-License-Identifier: Apache-2.0
/** Address messages: which addresses an interface carries. Layer: agent/interfaces (pure). */
import { addrFromBytes, type Addr } from '#lib/base/ip.ts'
import { attributeU32, decodeAttributes } from './message.ts'

export const RTM_NEWADDR = 20
export const RTM_DELADDR = 21
export const RTM_GETADDR = 22

export const SCOPE_GLOBAL = 0

export interface AddrMessage {
  readonly index: number
  readonly addr: Addr
  readonly bits: number
  /** 0 global, 253 link, 254 host */
  readonly scope: number
  /** duplicate address detection failed: the kernel does not answer on it */
  readonly duplicate: boolean
}

export const AF_INET = 2
export const AF_INET6 = 10
const HEADER = 8
const IFA_ADDRESS = 1
const IFA_LOCAL = 2
const IFA_FLAGS = 8
const IFA_F_DADFAILED = 0x8

/** Payload of RTM_GETADDR for a dump of both families. */
export function encodeAddrDump(): Buffer {
  return Buffer.alloc(HEADER)
}

/** Undefined for broken bytes and for families we do not know. */
export function decodeAddr(payload: Buffer): AddrMessage | undefined {
  if (payload.length < HEADER) return undefined
  const family = payload.readUInt8(0)
  if (family !== AF_INET && family !== AF_INET6) return undefined
  const attributes = decodeAttributes(payload.subarray(HEADER))
  // on point-to-point links IFA_ADDRESS is the other end
  const bytes = attributes.get(IFA_LOCAL) ?? attributes.get(IFA_ADDRESS)
  if (bytes?.length !== (family === AF_INET ? 4 : 16)) return undefined
  const flags = attributeU32(attributes, IFA_FLAGS) ?? payload.readUInt8(2)
  return {
    index: payload.readUInt32LE(4),
    addr: addrFromBytes(bytes),
    bits: payload.readUInt8(1),
    scope: payload.readUInt8(3),
    duplicate: (flags & IFA_F_DADFAILED) !== 0,
  }
}

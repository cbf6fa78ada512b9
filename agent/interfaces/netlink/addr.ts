// SPDX-License-Identifier: Apache-2.0
/** Address messages: which addresses an interface carries. Layer: agent/interfaces (pure). */
import { addrBits, addrBytes, addrFromBytes, isV4, type Addr } from '#lib/base/ip.ts'
import { attributeU32, decodeAttributes, encodeAttribute, encodeAttributeU32 } from './message.ts'

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
const IFA_F_NODAD = 0x2
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

/** An address in its own family's length, as the kernel wants it. */
export function bareAddr(addr: Addr): Uint8Array {
  const bytes = addrBytes(addr)
  return isV4(addr) ? bytes.subarray(12) : bytes
}

/** Payload of RTM_NEWADDR for an address that stands alone. Usable at once: no other machine on the link could have
 * it. */
export function encodeSingleAddr({ index, addr }: { readonly index: number; readonly addr: Addr }): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt8(isV4(addr) ? AF_INET : AF_INET6, 0)
  header.writeUInt8(addrBits(addr), 1)
  header.writeUInt8(SCOPE_GLOBAL, 3)
  header.writeUInt32LE(index, 4)
  const own = [encodeAttribute(IFA_LOCAL, bareAddr(addr)), encodeAttribute(IFA_ADDRESS, bareAddr(addr))]
  return Buffer.concat([header, ...own, ...(isV4(addr) ? [] : [encodeAttributeU32(IFA_FLAGS, IFA_F_NODAD)])])
}

// SPDX-License-Identifier: Apache-2.0
/** Neighbour messages: what is known of a link without asking. Layer: agent/interfaces (pure). */
import { isV4, type Addr } from '#lib/base/ip.ts'
import { AF_INET, AF_INET6, bareAddr } from './addr.ts'
import { macBytes } from './link.ts'
import { encodeAttribute } from './message.ts'

export const RTM_NEWNEIGH = 28

const HEADER = 12
const NDA_DST = 1
const NDA_LLADDR = 2
const NUD_PERMANENT = 0x80

/** Payload of RTM_NEWNEIGH for an entry that stays. */
export function encodeNeighbour({ index, addr, mac }: { readonly index: number; readonly addr: Addr; readonly mac: string }): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt8(isV4(addr) ? AF_INET : AF_INET6, 0)
  header.writeInt32LE(index, 4)
  header.writeUInt16LE(NUD_PERMANENT, 8)
  return Buffer.concat([header, encodeAttribute(NDA_DST, bareAddr(addr)), encodeAttribute(NDA_LLADDR, macBytes(mac))])
}

// SPDX-License-Identifier: Apache-2.0
/** Routing rules that ask for a packet's mark. Layer: agent/interfaces (pure). */
import { attributeU32, decodeAttributes } from './message.ts'

export const RTM_GETRULE = 34

export interface MarkRule {
  readonly priority: number
  readonly mark: number
  readonly mask: number
}

const HEADER = 12
const FRA_PRIORITY = 6
const FRA_FWMARK = 10
const FRA_FWMASK = 16

/** Payload of RTM_GETRULE for a dump of one family. */
export function encodeRuleDump(family: number): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt8(family, 0)
  return header
}

/** Undefined for broken bytes, and for rules that do not look at the mark. */
export function decodeMarkRule(payload: Buffer): MarkRule | undefined {
  if (payload.length < HEADER) return undefined
  const attributes = decodeAttributes(payload.subarray(HEADER))
  const [mark, mask] = [attributeU32(attributes, FRA_FWMARK) ?? 0, attributeU32(attributes, FRA_FWMASK) ?? 0]
  if (mark === 0 && mask === 0) return undefined
  return { priority: attributeU32(attributes, FRA_PRIORITY) ?? 0, mark, mask: mask === 0 ? ALL_BITS : mask }
}

const ALL_BITS = 0xffffffff

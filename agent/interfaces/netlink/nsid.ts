// SPDX-License-Identifier: Apache-2.0
/** Messages about the numbers that a network namespace has for others. Layer: agent/interfaces (pure). */
import { attributeU32, decodeAttributes, encodeAttributeU32 } from './message.ts'

export const RTM_NEWNSID = 88
export const RTM_GETNSID = 90

const HEADER = 4
const NETNSA_NSID = 1
const NETNSA_FD = 3
const UNASSIGNED = 0xffffffff

/** Payload of RTM_GETNSID that asks for the number of the namespace that this file is. */
export function encodeNsidQuestion(fd: number): Buffer {
  return Buffer.concat([Buffer.alloc(HEADER), encodeAttributeU32(NETNSA_FD, fd)])
}

/** Undefined: it has none, and so no device here has its other end there. */
export function decodeNsid(payload: Buffer): number | undefined {
  const id = attributeU32(decodeAttributes(payload.subarray(HEADER)), NETNSA_NSID)
  return id === UNASSIGNED ? undefined : id
}

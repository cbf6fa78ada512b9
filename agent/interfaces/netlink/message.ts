// SPDX-License-Identifier: Apache-2.0
/** Netlink headers and attributes as bytes, both ways; total: broken input ends the walk, it never throws.
 * Layer: agent/interfaces (pure). */

/** `type` has the nested and byte-order bits cut off. */
export type Attributes = ReadonlyMap<number, Buffer>

export interface NetlinkMessage {
  readonly type: number
  readonly flags: number
  readonly seq: number
  readonly port: number
  readonly payload: Buffer
}

export const NLMSG_ERROR = 2
export const NLMSG_DONE = 3

export const NLM_F_REQUEST = 0x1
export const NLM_F_ACK = 0x4
export const NLM_F_DUMP_INTERRUPTED = 0x10
export const NLM_F_DUMP = 0x300
export const NLM_F_REPLACE = 0x100
export const NLM_F_EXCL = 0x200
export const NLM_F_CREATE = 0x400

const HEADER = 16
const ATTRIBUTE_HEADER = 4
const ATTRIBUTE_TYPE_MASK = 0x3fff
/** the answer carries only the request's header, so attributes of the error begin right behind it */
const NLM_F_CAPPED = 0x100
const NLM_F_ACK_TLVS = 0x200
const NLMSGERR_ATTR_MSG = 1

function aligned(length: number): number {
  return (length + 3) & ~3
}

/** The bytes of one request. All supported machines are little-endian, as netlink is in host order. */
export function encodeMessage(message: { type: number; flags: number; seq: number; payload: Uint8Array }): Buffer {
  const bytes = Buffer.alloc(aligned(HEADER + message.payload.length))
  bytes.writeUInt32LE(HEADER + message.payload.length, 0)
  bytes.writeUInt16LE(message.type, 4)
  bytes.writeUInt16LE(message.flags, 6)
  bytes.writeUInt32LE(message.seq, 8)
  bytes.set(message.payload, HEADER)
  return bytes
}

/** The complete messages of one datagram, in order. */
export function decodeMessages(datagram: Buffer): NetlinkMessage[] {
  const messages: NetlinkMessage[] = []
  for (let at = 0; at + HEADER <= datagram.length;) {
    const length = datagram.readUInt32LE(at)
    if (length < HEADER || at + length > datagram.length) break
    messages.push({
      type: datagram.readUInt16LE(at + 4),
      flags: datagram.readUInt16LE(at + 6),
      seq: datagram.readUInt32LE(at + 8),
      port: datagram.readUInt32LE(at + 12),
      payload: datagram.subarray(at + HEADER, at + length),
    })
    at += aligned(length)
  }
  return messages
}

/** One attribute with its padding. */
export function encodeAttribute(type: number, value: Uint8Array): Buffer {
  const bytes = Buffer.alloc(aligned(ATTRIBUTE_HEADER + value.length))
  bytes.writeUInt16LE(ATTRIBUTE_HEADER + value.length, 0)
  bytes.writeUInt16LE(type, 2)
  bytes.set(value, ATTRIBUTE_HEADER)
  return bytes
}

/** A u32 attribute. */
export function encodeAttributeU32(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return encodeAttribute(type, bytes)
}

/** A text with the zero at its end. */
export function encodeAttributeText(type: number, text: string): Buffer {
  return encodeAttribute(type, Buffer.from(`${text}\0`))
}

/** The attributes in `bytes`; of a type that comes twice the last counts, as in the kernel. */
export function decodeAttributes(bytes: Buffer): Attributes {
  const attributes = new Map<number, Buffer>()
  for (let at = 0; at + ATTRIBUTE_HEADER <= bytes.length;) {
    const length = bytes.readUInt16LE(at)
    if (length < ATTRIBUTE_HEADER || at + length > bytes.length) break
    attributes.set(bytes.readUInt16LE(at + 2) & ATTRIBUTE_TYPE_MASK, bytes.subarray(at + ATTRIBUTE_HEADER, at + length))
    at += aligned(length)
  }
  return attributes
}

/** A u32 attribute's value; undefined when it is missing or shorter than that. */
export function attributeU32(attributes: Attributes, type: number): number | undefined {
  const value = attributes.get(type)
  return value === undefined || value.length < 4 ? undefined : value.readUInt32LE(0)
}

/** A zero-terminated string attribute. */
export function attributeString(attributes: Attributes, type: number): string | undefined {
  const value = attributes.get(type)
  if (value === undefined) return undefined
  const end = value.indexOf(0)
  return value.toString('utf8', 0, end < 0 ? value.length : end)
}

/** What NLMSG_ERROR or NLMSG_DONE carry: errno is positive, 0 for an acknowledgement; `text` is the kernel's own
 * explanation. */
export function decodeError(message: NetlinkMessage): { errno: number; text: string | undefined } {
  const { payload } = message
  if (payload.length < 4) return { errno: 0, text: undefined }
  const errno = Math.abs(payload.readInt32LE(0))
  if (message.type !== NLMSG_ERROR || (message.flags & NLM_F_ACK_TLVS) === 0 || payload.length < 4 + HEADER)
    return { errno, text: undefined }
  const echoed = (message.flags & NLM_F_CAPPED) !== 0 ? HEADER : aligned(payload.readUInt32LE(4))
  return { errno, text: attributeString(decodeAttributes(payload.subarray(4 + echoed)), NLMSGERR_ATTR_MSG) }
}

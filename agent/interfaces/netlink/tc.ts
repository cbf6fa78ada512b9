// SPDX-License-Identifier: Apache-2.0
/** Queueing-discipline and filter messages, enough to see whose programs hang at a clsact hook.
 * Layer: agent/interfaces (pure). */
import { attributeString, attributeU32, decodeAttributes, type NetlinkMessage } from './message.ts'

export const RTM_DELQDISC = 37
export const RTM_GETQDISC = 38
export const RTM_DELTFILTER = 45
export const RTM_GETTFILTER = 46

/** Where the filters of the two directions hang. */
export const CLSACT_PARENT = { ingress: 0xfffffff2, egress: 0xfffffff3 } as const

export interface QdiscMessage {
  readonly ifindex: number
  readonly kind: string
}

export interface FilterMessage {
  readonly ifindex: number
  readonly parent: number
  readonly handle: number
  readonly priority: number
  readonly kind: string
  /** of a bpf filter; undefined for the header entry a dump gives for each priority */
  readonly programId: number | undefined
}

const HEADER = 20
const TCA_KIND = 1
const TCA_OPTIONS = 2
const TCA_BPF_ID = 11

/** Payload of RTM_GETQDISC for a dump of all interfaces. */
export function encodeQdiscDump(): Buffer {
  return Buffer.alloc(HEADER)
}

/** Payload of RTM_GETTFILTER for a dump of one parent's filters. */
export function encodeFilterDump(ifindex: number, parent: number): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeInt32LE(ifindex, 4)
  header.writeUInt32LE(parent, 12)
  return header
}

/** Undefined for broken bytes. */
export function decodeQdisc(payload: Buffer): QdiscMessage | undefined {
  if (payload.length < HEADER) return undefined
  const kind = attributeString(decodeAttributes(payload.subarray(HEADER)), TCA_KIND)
  return kind === undefined ? undefined : { ifindex: payload.readInt32LE(4), kind }
}

/** Undefined for broken bytes. */
export function decodeFilter(payload: Buffer): FilterMessage | undefined {
  if (payload.length < HEADER) return undefined
  const attributes = decodeAttributes(payload.subarray(HEADER))
  const kind = attributeString(attributes, TCA_KIND)
  if (kind === undefined) return undefined
  const options = attributes.get(TCA_OPTIONS)
  return {
    ifindex: payload.readInt32LE(4),
    handle: payload.readUInt32LE(8),
    parent: payload.readUInt32LE(12),
    priority: payload.readUInt32LE(16) >>> 16,
    kind,
    programId: options === undefined ? undefined : attributeU32(decodeAttributes(options), TCA_BPF_ID),
  }
}

/** Of a filter at a clsact hook, or of the clsact itself. */
export function isClsactRemoval({ type, payload }: Pick<NetlinkMessage, 'type' | 'payload'>): boolean {
  if (type === RTM_DELQDISC) return decodeQdisc(payload)?.kind === 'clsact'
  const parent = type === RTM_DELTFILTER ? decodeFilter(payload)?.parent : undefined
  return parent === CLSACT_PARENT.ingress || parent === CLSACT_PARENT.egress
}

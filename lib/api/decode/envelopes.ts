// SPDX-License-Identifier: Apache-2.0
/** What Kubernetes puts around objects in Protocol Buffers: lists, events, refusals. What comes out is what its JSON
 * would have been. Layer: lib/api (pure). */
import { isObject } from '../../base/object.ts'
import { many, messageOf, one, ProtobufError, readMessage, type Message } from './protobuf.ts'

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** What is asked for: servers that have no Protocol Buffers of a kind give JSON. */
export function acceptOf(message: Message | undefined, what: 'list' | 'watch'): string {
  if (message === undefined) return 'application/json'
  return `${PROTOBUF}${what === 'watch' ? ';stream=watch' : ''}, application/json`
}

const STATUS = messageOf({
  3: one('message', 'text'),
  4: one('reason', 'text'),
  5: one('details', messageOf({ 4: many('causes', messageOf({ 1: one('reason', 'text') })), 5: one('retryAfterSeconds', 'number') })),
  6: one('code', 'number'),
})

const UNKNOWN = messageOf({ 1: one('typeMeta', messageOf({ 2: one('kind', 'text') })), 2: one('raw', 'bytes') })
const EVENT = messageOf({ 1: one('type', 'text'), 2: one('object', messageOf({ 1: one('raw', 'bytes') })) })
const LIST_METADATA = messageOf({ 2: one('resourceVersion', 'text'), 3: one('continue', 'text') })
/** In front of every object that stands for itself. */
const MAGIC = Buffer.from('k8s\0')

/** An object of the kind, or a Status. Throws ProtobufError. */
export function readObject(bytes: Buffer, item: Message): Readonly<Record<string, unknown>> {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new ProtobufError('it does not begin as objects do')
  const { typeMeta, raw = Buffer.alloc(0) } = readMessage(bytes.subarray(MAGIC.length), UNKNOWN)
  const isStatus = isObject(typeMeta) && typeMeta['kind'] === 'Status'
  if (!Buffer.isBuffer(raw)) throw new ProtobufError('it has no object')
  return readMessage(raw, isStatus ? STATUS : item)
}

const LIST = messageOf({ 1: one('metadata', LIST_METADATA), 2: many('items', 'bytes') })

/** A page of a list, or a Status. Its items are read one by one as they are taken, so that none is there longer than
 * it is needed. Both throw ProtobufError. */
export function readList(bytes: Buffer, item: Message): Readonly<Record<string, unknown>> {
  const list = readObject(bytes, LIST)
  return Array.isArray(list['items']) ? { ...list, items: eachOf(list['items'], item) } : list
}

function* eachOf(parts: readonly unknown[], item: Message): Generator<Readonly<Record<string, unknown>>> {
  for (const part of parts) if (Buffer.isBuffer(part)) yield readMessage(part, item)
}

/** As a line of a JSON watch: type and object. Throws ProtobufError. */
export function readEvent(bytes: Buffer, item: Message): Readonly<Record<string, unknown>> {
  const { type, object } = readMessage(bytes, EVENT)
  const raw = isObject(object) ? object['raw'] : undefined
  return { type, object: Buffer.isBuffer(raw) ? readObject(raw, item) : undefined }
}

// SPDX-License-Identifier: Apache-2.0
/** What is read of Kubernetes' own kinds when they come as Protocol Buffers: every field that a parser of lib/kube asks for, and its number.
 * Layer: lib/api (pure). */
import { isObject } from '../base/object.ts'
import { many, messageOf, one, ProtobufError, readMessage, type Message } from './protobuf.ts'

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

const METADATA = messageOf({
  1: one('name', 'text'),
  3: one('namespace', 'text'),
  6: one('resourceVersion', 'text'),
  9: one('deletionTimestamp', 'time'),
  11: one('labels', 'texts-by-key'),
  12: one('annotations', 'texts-by-key'),
})

const SERVICE_PORT = messageOf({
  1: one('name', 'text'),
  2: one('protocol', 'text'),
  3: one('port', 'number'),
  4: one('targetPort', 'number-or-text'),
  5: one('nodePort', 'number'),
})

const SERVICE = messageOf({
  1: one('metadata', METADATA),
  2: one(
    'spec',
    messageOf({
      1: many('ports', SERVICE_PORT),
      3: one('clusterIP', 'text'),
      4: one('type', 'text'),
      5: many('externalIPs', 'text'),
      7: one('sessionAffinity', 'text'),
      9: many('loadBalancerSourceRanges', 'text'),
      11: one('externalTrafficPolicy', 'text'),
      12: one('healthCheckNodePort', 'number'),
      13: one('publishNotReadyAddresses', 'flag'),
      14: one('sessionAffinityConfig', messageOf({ 1: one('clientIP', messageOf({ 1: one('timeoutSeconds', 'number') })) })),
      18: many('clusterIPs', 'text'),
      19: many('ipFamilies', 'text'),
      22: one('internalTrafficPolicy', 'text'),
    }),
  ),
  3: one(
    'status',
    messageOf({ 1: one('loadBalancer', messageOf({ 1: many('ingress', messageOf({ 1: one('ip', 'text'), 3: one('ipMode', 'text') })) })) }),
  ),
})

const NAMED = messageOf({ 1: one('name', 'text') })

const ENDPOINT_SLICE = messageOf({
  1: one('metadata', METADATA),
  2: many(
    'endpoints',
    messageOf({
      1: many('addresses', 'text'),
      2: one('conditions', messageOf({ 1: one('ready', 'flag'), 2: one('serving', 'flag'), 3: one('terminating', 'flag') })),
      6: one('nodeName', 'text'),
      7: one('zone', 'text'),
      8: one('hints', messageOf({ 1: many('forZones', NAMED), 2: many('forNodes', NAMED) })),
    }),
  ),
  3: many('ports', messageOf({ 1: one('name', 'text'), 2: one('protocol', 'text'), 3: one('port', 'number') })),
  4: one('addressType', 'text'),
})

const CONTAINER = messageOf({
  6: many('ports', messageOf({ 1: one('name', 'text'), 3: one('containerPort', 'number'), 4: one('protocol', 'text') })),
})

const POD = messageOf({
  1: one('metadata', METADATA),
  2: one(
    'spec',
    messageOf({
      2: many('containers', CONTAINER),
      8: one('serviceAccountName', 'text'),
      10: one('nodeName', 'text'),
      11: one('hostNetwork', 'flag'),
      20: many('initContainers', CONTAINER),
    }),
  ),
  3: one(
    'status',
    messageOf({ 1: one('phase', 'text'), 6: one('podIP', 'text'), 12: many('podIPs', messageOf({ 1: one('ip', 'text') })) }),
  ),
})

const NODE = messageOf({
  1: one('metadata', METADATA),
  2: one(
    'spec',
    messageOf({ 1: one('podCIDR', 'text'), 5: many('taints', messageOf({ 1: one('key', 'text') })), 7: many('podCIDRs', 'text') }),
  ),
  3: one('status', messageOf({ 5: many('addresses', messageOf({ 1: one('type', 'text'), 2: one('address', 'text') })) })),
})

const ONLY_METADATA = messageOf({ 1: one('metadata', METADATA) })

/** Kinds with few objects stay with JSON, and so do those whose last good versions are kept as they came. */
const MESSAGES: ReadonlyMap<string, Message> = new Map([
  ['v1 Service', SERVICE],
  ['discovery.k8s.io/v1 EndpointSlice', ENDPOINT_SLICE],
  ['v1 Pod', POD],
  ['v1 Node', NODE],
  ['v1 Namespace', ONLY_METADATA],
  ['v1 ServiceAccount', ONLY_METADATA],
])

/** Undefined: it comes as JSON alone. */
export function messageFor({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Message | undefined {
  return MESSAGES.get(`${apiVersion} ${kind}`)
}

/** What is asked for: servers that have no Protocol Buffers of a kind give JSON. */
export function acceptOf(message: Message | undefined, what: 'list' | 'watch'): string {
  if (message === undefined) return 'application/json'
  return `${PROTOBUF}${what === 'watch' ? ';stream=watch' : ''}, application/json`
}

const STATUS = messageOf({
  3: one('message', 'text'),
  4: one('reason', 'text'),
  5: one('details', messageOf({ 5: one('retryAfterSeconds', 'number') })),
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

/** A page of a list, or a Status. Its items are read one by one as they are taken, so that none is there longer than it is needed. Both throw
 * ProtobufError. */
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

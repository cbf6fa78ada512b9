// SPDX-License-Identifier: Apache-2.0
/** What is read of Kubernetes' own kinds when they come as Protocol Buffers: every field that a parser of lib/kube
 * asks for, and its number. Layer: lib/api (pure). */
import { many, messageOf, one, type Message } from './protobuf.ts'

const METADATA_FIELDS = {
  1: one('name', 'text'),
  3: one('namespace', 'text'),
  6: one('resourceVersion', 'text'),
  9: one('deletionTimestamp', 'time'),
  11: one('labels', 'texts-by-key'),
  12: one('annotations', 'texts-by-key'),
} as const
const METADATA = messageOf(METADATA_FIELDS)
const SERVICE_METADATA = messageOf({ ...METADATA_FIELDS, 8: one('creationTimestamp', 'time') })
const METADATA_WITH_UID = messageOf({ ...METADATA_FIELDS, 5: one('uid', 'text') })

const OWNER = messageOf({ 1: one('kind', 'text'), 3: one('name', 'text'), 6: one('controller', 'flag') })
const POD_METADATA = messageOf({
  ...METADATA_FIELDS,
  2: one('generateName', 'text'),
  5: one('uid', 'text'),
  13: many('ownerReferences', OWNER),
})

const SERVICE_PORT = messageOf({
  1: one('name', 'text'),
  2: one('protocol', 'text'),
  3: one('port', 'number'),
  4: one('targetPort', 'number-or-text'),
  5: one('nodePort', 'number'),
})

const SERVICE = messageOf({
  1: one('metadata', SERVICE_METADATA),
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
      4: one('targetRef', messageOf({ 3: one('name', 'text'), 4: one('uid', 'text') })),
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
  24: one('restartPolicy', 'text'),
})

const POD = messageOf({
  1: one('metadata', POD_METADATA),
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
    messageOf({
      1: one('phase', 'text'),
      6: one('podIP', 'text'),
      7: one('startTime', 'time'),
      12: many('podIPs', messageOf({ 1: one('ip', 'text') })),
    }),
  ),
})

const NODE = messageOf({
  1: one('metadata', METADATA_WITH_UID),
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

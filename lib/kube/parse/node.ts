// SPDX-License-Identifier: Apache-2.0
/** Raw Node and Namespace → model. Layer: lib/kube. */
import type { Addr } from '../../base/ip.ts'
import type { Namespace } from '../../model/namespace.ts'
import type { Node } from '../../model/node.ts'
import { asCidr, asRecord, each, inside, NONE, text, under, usable } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { labelsOf } from './labels.ts'
import { asReachable } from './special-addresses.ts'
import { ipAnnotationsOf } from './ip-annotations.ts'

export function parseNode(input: ParseInput): Node {
  const addresses = inside(input.raw, 'status', (status) => internalAddresses(status, input))
  const podCIDRs = inside(input.raw, 'spec', (spec) => {
    const plural = each(spec, 'podCIDRs', asCidr)
    const single = text(spec, 'podCIDR') ?? ''
    return plural.length > 0 || single === '' ? plural : [under('podCIDR', () => asCidr(single))]
  })
  const { zone, uid } = inside(input.raw, 'metadata', (metadata) => ({
    zone: inside(metadata, 'labels', (labels) => text(labels, ZONE)),
    uid: text(metadata, 'uid'),
  }))
  const leaving = isLeaving(input.raw) ? { leaving: true as const } : {}
  return {
    kind: 'Node',
    namespace: '',
    name: input.name,
    addresses,
    podCIDRs,
    zone: zone && input.intern(zone),
    labels: labelsOf(input),
    subnets: NONE,
    ...leaving,
    ...(uid === undefined ? {} : { uid }),
  }
}

/** So that new connections go elsewhere, as kube-proxy's health port has it. */
const LEAVING_TAINT = 'ToBeDeletedByClusterAutoscaler'

function isLeaving(raw: Raw): boolean {
  const deleted = inside(raw, 'metadata', (metadata) => text(metadata, 'deletionTimestamp'))
  const taints = inside(raw, 'spec', (spec) => each(spec, 'taints', (taint) => text(asRecord(taint), 'key')))
  return deleted !== undefined || taints.includes(LEAVING_TAINT)
}

const ZONE = 'topology.kubernetes.io/zone'

function internalAddresses(status: Raw, input: ParseInput): readonly Addr[] {
  return usable(status, 'addresses', {
    read: (value) => {
      const entry = asRecord(value)
      if (text(entry, 'type') !== 'InternalIP') return undefined
      return under('address', () => asReachable(entry['address']))
    },
    refuse: (error) => {
      input.refuse(error.under('status'))
    },
  })
}

export function parseNamespace(input: ParseInput): Namespace {
  return { kind: 'Namespace', namespace: '', name: input.name, labels: labelsOf(input), ...ipAnnotationsOf(input) }
}

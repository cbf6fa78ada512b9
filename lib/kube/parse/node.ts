// SPDX-License-Identifier: Apache-2.0
/** Raw Node and Namespace → model. Layer: lib/kube. */
import type { Sliced } from '../../base/async/slices.ts'
import { isV4, type Addr, type Cidr } from '../../base/ip.ts'
import type { Namespace } from '../../model/namespace.ts'
import type { Node } from '../../model/node.ts'
import {
  asCidr,
  asRecord,
  each,
  elements,
  inside,
  insideInSlices,
  NONE,
  refuseUnder,
  text,
  under,
  usableAddress,
  usableAddressesInSlices,
  usableInSlices,
} from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { STARTUP_TAINT } from '../objects/startup-taint.ts'
import { labelsOf } from './labels.ts'
import { asReachable } from './special-addresses.ts'
import { ipAnnotationsOf } from './ip-annotations.ts'

export function* parseNode(input: ParseInput): Sliced<Node> {
  const addresses = yield* insideInSlices(input.raw, 'status', (status) => nodeAddresses(status, input))
  const podCIDRs = yield* insideInSlices(input.raw, 'spec', function* (spec): Sliced<readonly Cidr[]> {
    const use = { read: asCidr, refuse: refuseUnder(input, 'spec') }
    const single = text(spec, 'podCIDR') ?? ''
    const isSingle = single !== '' && elements(spec, 'podCIDRs').length === 0
    return isSingle ? usableAddress('podCIDR', single, use) : yield* usableAddressesInSlices(spec, 'podCIDRs', use)
  })
  const { zone, uid } = inside(input.raw, 'metadata', (metadata) => ({
    zone: inside(metadata, 'labels', (labels) => text(labels, ZONE)),
    uid: text(metadata, 'uid'),
  }))
  const taints = inside(input.raw, 'spec', (spec) => each(spec, 'taints', (taint) => text(asRecord(taint), 'key')))
  const leaving = isLeaving(input.raw, taints) ? { leaving: true as const } : {}
  const awaitsAgent = taints.includes(STARTUP_TAINT) ? { awaitsAgent: true as const } : {}
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
    ...awaitsAgent,
    ...(uid === undefined ? {} : { uid }),
  }
}

/** So that new connections go elsewhere, as kube-proxy's health port has it. */
const LEAVING_TAINT = 'ToBeDeletedByClusterAutoscaler'

function isLeaving(raw: Raw, taints: readonly (string | undefined)[]): boolean {
  const deleted = inside(raw, 'metadata', (metadata) => text(metadata, 'deletionTimestamp'))
  return deleted !== undefined || taints.includes(LEAVING_TAINT)
}

const ZONE = 'topology.kubernetes.io/zone'

/** As kubelet and kube-proxy choose: InternalIPs, and ExternalIPs of a family that has no InternalIP. */
export function* nodeAddresses(status: Raw, input: Pick<ParseInput, 'refuse'>): Sliced<readonly Addr[]> {
  const typed = yield* usableInSlices(status, 'addresses', {
    read: (value) => {
      const entry = asRecord(value)
      const type = text(entry, 'type')
      if (type !== 'InternalIP' && type !== 'ExternalIP') return undefined
      return { type, addr: under('address', () => asReachable(entry['address'])) }
    },
    refuse: refuseUnder(input, 'status'),
  })
  const ofType = (wanted: string): Addr[] => typed.flatMap(({ type, addr }) => (type === wanted ? [addr] : []))
  const internal = ofType('InternalIP')
  const families = new Set(internal.map(isV4))
  const external = ofType('ExternalIP').filter((addr) => !families.has(isV4(addr)))
  return typed.length === 0 ? NONE : [...internal, ...external]
}

export function parseNamespace(input: ParseInput): Namespace {
  return { kind: 'Namespace', namespace: '', name: input.name, labels: labelsOf(input), ...ipAnnotationsOf(input) }
}

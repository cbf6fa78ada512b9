// SPDX-License-Identifier: Apache-2.0
/** Raw NetworkSet and GlobalNetworkSet → model. Layer: lib/kube. */
import type { Sliced } from '../../base/async/slices.ts'
import { formatCidr, type Cidr } from '../../base/ip.ts'
import type { NetworkSet } from '../../model/policy.ts'
import { asNet, insideInSlices, refuseUnder, usableAddressesInSlices } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { labelsOf } from './labels.ts'
import { listed, object } from '../schema/shape.ts'
import { net } from '../schema/primitives.ts'

export const networkSetSpec = object({ nets: listed('Prefixes and addresses, of either family.', net, { most: 65_536 }) })

export function parseNetworkSet(input: ParseInput): Sliced<NetworkSet> {
  return networkSet(input, 'NetworkSet')
}

export function parseGlobalNetworkSet(input: ParseInput): Sliced<NetworkSet> {
  return networkSet(input, 'GlobalNetworkSet')
}

function* networkSet(input: ParseInput, kind: NetworkSet['kind']): Sliced<NetworkSet> {
  const nets = yield* insideInSlices(input.raw, 'spec', (spec) =>
    usableAddressesInSlices(networkSetSpec.only(spec), 'nets', { read: asNet, refuse: refuseUnder(input, 'spec') }),
  )
  const distinct = new Map<string, Cidr>()
  for (const one of nets) {
    distinct.set(formatCidr(one), one)
    yield
  }
  return { kind, namespace: input.namespace, name: input.name, labels: labelsOf(input), nets: [...distinct.values()] }
}

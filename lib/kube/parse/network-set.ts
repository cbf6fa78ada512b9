// SPDX-License-Identifier: Apache-2.0
/** Raw NetworkSet and GlobalNetworkSet → model. Layer: lib/kube. */
import { formatCidr } from '../../base/ip.ts'
import type { NetworkSet } from '../../model/policy.ts'
import { asNet, inside, refuseUnder, readWithoutBadAddresses } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { labelsOf } from './labels.ts'
import { listed, object } from '../schema/shape.ts'
import { net } from '../schema/primitives.ts'

export const networkSetSpec = object({ nets: listed('Prefixes and addresses, of either family.', net, { most: 65_536 }) })

export function parseNetworkSet(input: ParseInput): NetworkSet {
  return networkSet(input, 'NetworkSet')
}

export function parseGlobalNetworkSet(input: ParseInput): NetworkSet {
  return networkSet(input, 'GlobalNetworkSet')
}

function networkSet(input: ParseInput, kind: NetworkSet['kind']): NetworkSet {
  const { nets } = inside(input.raw, 'spec', (spec) =>
    readWithoutBadAddresses(spec, 'nets', { read: asNet, refuse: refuseUnder(input, 'spec'), whole: networkSetSpec.read }),
  )
  const distinct = new Map(nets.map((one) => [formatCidr(one), one]))
  return { kind, namespace: input.namespace, name: input.name, labels: labelsOf(input), nets: [...distinct.values()] }
}

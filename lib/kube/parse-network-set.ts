// SPDX-License-Identifier: Apache-2.0
/** Raw NetworkSet and GlobalNetworkSet → model. Layer: lib/kube. */
import type { NetworkSet } from '../model/policy.ts'
import { asNet, each, inside, only } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { labelsOf } from './labels.ts'

export function parseNetworkSet(input: ParseInput): NetworkSet {
  return networkSet(input, 'NetworkSet')
}

export function parseGlobalNetworkSet(input: ParseInput): NetworkSet {
  return networkSet(input, 'GlobalNetworkSet')
}

function networkSet(input: ParseInput, kind: NetworkSet['kind']): NetworkSet {
  const nets = inside(input.raw, 'spec', (spec) => each(only(spec, ['nets']), 'nets', asNet))
  return { kind, namespace: input.namespace, name: input.name, labels: labelsOf(input), nets }
}

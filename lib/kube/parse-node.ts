// SPDX-License-Identifier: Apache-2.0
/** Raw Node and Namespace → model. Layer: lib/kube. */
import type { Addr } from '../base/ip.ts'
import type { Namespace } from '../model/namespace.ts'
import type { Node } from '../model/node.ts'
import { asCidr, asRecord, each, FieldError, inside, text, under, usable } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { asReachable } from './special-addresses.ts'

export function parseNode(input: ParseInput): Node {
  const addresses = inside(input.raw, 'status', (status) => internalAddresses(status, input))
  const podCIDRs = inside(input.raw, 'spec', (spec) => {
    const plural = each(spec, 'podCIDRs', asCidr)
    const single = text(spec, 'podCIDR') ?? ''
    return plural.length > 0 || single === '' ? plural : [under('podCIDR', () => asCidr(single))]
  })
  return { kind: 'Node', namespace: '', name: input.name, addresses, podCIDRs }
}

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
  const labels = inside(input.raw, 'metadata', (metadata) => inside(metadata, 'labels', labelMap))
  return { kind: 'Namespace', namespace: '', name: input.name, labels }
}

function labelMap(raw: Raw): ReadonlyMap<string, string> {
  const labels = new Map<string, string>()
  for (const key of Object.keys(raw).sort()) {
    const value = raw[key]
    if (typeof value !== 'string') throw new FieldError(`['${key}']`, 'must be text')
    labels.set(key, value)
  }
  return labels
}

// SPDX-License-Identifier: Apache-2.0
/** IPAMBlock objects, both ways: in the API server, and in files where there is none. Layer: lib/kube. */
import { addrAt, indexOf } from '../../base/range.ts'
import { formatAddr, formatCidr } from '../../base/ip.ts'
import type { Addr, Cidr } from '../../base/ip.ts'
import { fnv1a64 } from '../../base/hash.ts'
import type { IPBlock } from '../../model/ip-block.ts'
import { FieldError, inside } from '../parse/fields.ts'
import type { Raw } from '../parse/fields.ts'
import { listed, object, required } from '../schema/shape.ts'
import type { Shape } from '../schema/shape.ts'
import { address, cidr, text } from '../schema/primitives.ts'

export const IP_BLOCK = { apiVersion: 'netplane.io/v3', kind: 'IPAMBlock' } as const
/** By which a node finds its own. */
export const BLOCK_NODE_LABEL = 'netplane.io/node'

const LONGEST_LABEL = 63
/** No block is larger: of a longer range only so many addresses are given away. */
const MOST = 65_536

/** As we write them. */
const TIME = String.raw`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,3})?Z$`

const time: Shape<number> = {
  read: (value) => {
    const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
    if (Number.isNaN(ms)) throw new FieldError('', 'must be a time')
    return ms
  },
  // not by its format: a server lets lists pass where one is given
  schema: { type: 'string', pattern: TIME },
}

const allocation = object({
  address: required('The address, without a prefix length.', address),
  namespace: required('Of the pod.', text),
  pod: required('Its name.', text),
  containerId: required('Its sandbox.', text),
})

const released = object({
  address: required('The address, without a prefix length.', address),
  at: required('When it was given back.', time),
})

export const ipBlockSpec = object({
  cidr: required('The addresses of the block; cannot be changed.', cidr),
  node: required('The node that gives them to its pods.', text),
  allocations: listed('Those that are given away.', allocation, { most: MOST }),
  released: listed('Those that were given back lately: they rest before they are given away again.', released, { most: MOST }),
})

/** "10-0-1-64-26", "fd00--40-122": two nodes that want the same block want the same name. */
export function blockName({ addr, bits }: Cidr): string {
  const from = formatAddr(addr)
  return `${from.startsWith(':') ? '0' : ''}${from}/${bits}`.replaceAll(/[.:/]/g, '-')
}

/** A node's name may be longer than a label's value. */
export function blockNodeLabel(node: string): string {
  return node.length <= LONGEST_LABEL ? node : fnv1a64(node)
}

export interface IPBlockObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec: Raw
}

export function ipBlockObject({ cidr, node, held, freed }: IPBlock): IPBlockObject {
  return {
    apiVersion: IP_BLOCK.apiVersion,
    kind: IP_BLOCK.kind,
    metadata: { name: blockName(cidr), labels: { [BLOCK_NODE_LABEL]: blockNodeLabel(node) } },
    spec: {
      cidr: formatCidr(cidr),
      node,
      allocations: [...held].sort(byIndex).map(([index, holder]) => ({ address: formatAddr(addrAt(cidr, index)), ...holder })),
      released: [...freed]
        .sort(byIndex)
        .map(([index, ms]) => ({ address: formatAddr(addrAt(cidr, index)), at: new Date(ms).toISOString() })),
    },
  }
}

/** Throws FieldError. */
export function parseIPBlock(raw: Raw): IPBlock {
  return inside(raw, 'spec', (value) => {
    const { cidr, node, allocations, released } = ipBlockSpec.read(value)
    const index = ({ address }: { readonly address: Addr }): number => {
      const found = indexOf(cidr, address)
      if (found === undefined) throw new FieldError('', `${formatAddr(address)} is not in ${formatCidr(cidr)}`)
      return found
    }
    return {
      cidr,
      node,
      held: new Map(allocations.map(({ address, ...holder }) => [index({ address }), holder])),
      freed: new Map(released.map(({ address, at }) => [index({ address }), at])),
    }
  })
}

function byIndex(a: readonly [number, unknown], b: readonly [number, unknown]): number {
  return a[0] - b[0]
}

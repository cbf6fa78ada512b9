// SPDX-License-Identifier: Apache-2.0
/** IPAMBlock objects, both ways: in the API server, and in files where there is none. Layer: lib/kube. */
import { formatAddr, formatCidr } from '../base/ip.ts'
import type { Cidr } from '../base/ip.ts'
import { fnv1a64 } from '../base/hash.ts'
import type { Holder, IPBlock } from '../model/ip-block.ts'
import { asCidr, asRecord, FieldError, inside, record, text, under } from './fields.ts'
import type { Raw } from './fields.ts'

export const IP_BLOCK = { apiVersion: 'netplane.io/v3', kind: 'IPAMBlock' } as const
/** By which a node finds its own. */
export const BLOCK_NODE_LABEL = 'netplane.io/node'

const LONGEST_LABEL = 63

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
      held: Object.fromEntries([...held].sort(byIndex)),
      freed: Object.fromEntries([...freed].sort(byIndex).map(([index, ms]) => [index, new Date(ms).toISOString()])),
    },
  }
}

/** Throws FieldError. */
export function parseIPBlock(raw: Raw): IPBlock {
  return inside(raw, 'spec', (spec) => ({
    cidr: under('cidr', () => asCidr(text(spec, 'cidr'))),
    node: needed(spec, 'node'),
    held: indexed(spec, 'held', holder),
    freed: indexed(spec, 'freed', time),
  }))
}

function byIndex(a: readonly [number, unknown], b: readonly [number, unknown]): number {
  return a[0] - b[0]
}

function indexed<T>(spec: Raw, key: string, read: (value: unknown) => T): ReadonlyMap<number, T> {
  const entries = Object.entries(record(spec, key)).map(([index, value]) =>
    under(`${key}['${index}']`, (): [number, T] => {
      if (!/^(0|[1-9]\d{0,5})$/.test(index)) throw new FieldError('', 'must be the number of an address')
      return [Number(index), read(value)]
    }),
  )
  return new Map(entries)
}

function holder(value: unknown): Holder {
  const raw = asRecord(value)
  return { namespace: needed(raw, 'namespace'), pod: needed(raw, 'pod'), containerId: needed(raw, 'containerId') }
}

function time(value: unknown): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(ms)) throw new FieldError('', 'must be a time')
  return ms
}

function needed(raw: Raw, key: string): string {
  const value = text(raw, key) ?? ''
  if (value === '') throw new FieldError(key, 'is missing')
  return value
}

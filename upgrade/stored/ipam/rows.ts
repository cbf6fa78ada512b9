// SPDX-License-Identifier: Apache-2.0
/** Stored blocks and whose they are, as far as they exist. Layer: upgrade (pure). */
import { addrBits, formatCidr, tryParseCidr, type Cidr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { rangeSize } from '#lib/base/range.ts'
import { FieldError, asRecord, each, own, text, under } from '#lib/kube/parse/fields.ts'
import type { StoredObject } from '../metadata.ts'
import type { Raw, StoredRef } from '../outcome.ts'

/** What an address was given for. */
export type Use = 'pod' | 'tunnel' | 'service' | 'windows' | 'unknown'

export interface Allocation {
  /** from the first address of the block */
  readonly index: number
  readonly use: Use
  /** empty: very old allocations have none */
  readonly handle: string
  /** each is empty where the allocation does not say it */
  readonly node: string
  readonly namespace: string
  readonly pod: string
}

/** Of a node, of none any more, or of services. */
export type Affinity = { readonly of: 'node'; readonly node: string } | { readonly of: 'none' } | { readonly of: 'services' }

export interface StoredBlock {
  readonly of: StoredRef
  readonly cidr: Cidr
  readonly affinity: Affinity
  readonly allocations: readonly Allocation[]
  /** indexes in the order in which they were to be given */
  readonly free: readonly number[]
}

const POD_HANDLE = 'k8s-pod-network.'
const TUNNEL_HANDLE = /^(ipip|vxlan|vxlan-v6|wireguard|wireguard-v6)-tunnel-addr-/
const WINDOWS_HANDLE = 'windows-reserved-ipam-handle'

/** Rows that say so do not exist. Affinities say it as text. */
export function isDeleted({ spec }: StoredObject): boolean {
  const deleted = isObject(spec) ? own(spec, 'deleted') : undefined
  return deleted === true || deleted === 'true'
}

/** Throws FieldError. */
export function storedBlock({ ref, spec }: StoredObject): StoredBlock {
  return under('spec', () => {
    const raw = asRecord(spec)
    const cidr = cidrOf(raw)
    const attributes = each(raw, 'attributes', attributesOf)
    const ordinals = each(raw, 'allocations', (value) => (value === null ? undefined : ordinal(value, attributes.length)))
    if (ordinals.length !== rangeSize(cidr) || 2 ** (addrBits(cidr.addr) - cidr.bits) !== ordinals.length)
      throw new FieldError('allocations', `must be one for each address of ${formatCidr(cidr)}, 65536 at most`)
    const allocations = ordinals.flatMap((at, index) => {
      const attribute = at === undefined ? undefined : (attributes[at] ?? NO_ATTRIBUTES)
      return attribute === undefined ? [] : [{ index, ...attribute }]
    })
    const free = each(raw, 'unallocated', (value) => ordinal(value, ordinals.length))
    return { of: ref, cidr, affinity: affinityOf(raw), allocations, free }
  })
}

function cidrOf(raw: Raw): Cidr {
  const cidr = tryParseCidr(text(raw, 'cidr') ?? '')
  if (cidr === undefined) throw new FieldError('cidr', 'must be an IP prefix, like 10.0.0.0/26')
  return cidr
}

function affinityOf(raw: Raw): Affinity {
  const said = text(raw, 'affinity') ?? ''
  if (said.startsWith('host:')) return { of: 'node', node: said.slice('host:'.length) }
  if (said.startsWith('virtual:')) return { of: 'services' }
  if (said === '') return { of: 'none' }
  throw new FieldError('affinity', 'must be host:<node>, virtual:load-balancer or nothing')
}

/** A very old allocation names one that is not there. */
function ordinal(value: unknown, count: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && (count === 0 || value < count)) return value
  throw new FieldError('', `must be 0..${Math.max(0, count - 1)}`)
}

type Attributes = Omit<Allocation, 'index'>

const NO_ATTRIBUTES: Attributes = { use: 'unknown', handle: '', node: '', namespace: '', pod: '' }

function attributesOf(value: unknown): Attributes {
  const raw = asRecord(value)
  const handle = text(raw, 'handle_id') ?? ''
  return under('secondary', () => {
    const secondary = own(raw, 'secondary') === undefined ? {} : asRecord(own(raw, 'secondary'))
    const said = (key: string): string => text(secondary, key) ?? ''
    const pod = said('pod')
    return {
      use: useOf({ handle, pod, type: said('type'), service: said('service') }),
      handle,
      node: said('node'),
      namespace: said('namespace'),
      pod,
    }
  })
}

function useOf(said: { readonly handle: string; readonly pod: string; readonly type: string; readonly service: string }): Use {
  if (said.service !== '') return 'service'
  if (said.handle === WINDOWS_HANDLE) return 'windows'
  if (TUNNEL_HANDLE.test(said.handle) || /TunnelAddress$/i.test(said.type)) return 'tunnel'
  return said.pod !== '' || said.handle.startsWith(POD_HANDLE) ? 'pod' : 'unknown'
}

/** Of a pod's sandbox; empty where the handle is none of a pod. */
export function containerOf(handle: string): string {
  return handle.startsWith(POD_HANDLE) ? handle.slice(POD_HANDLE.length) : ''
}

export interface StoredAffinity {
  readonly cidr: string
  readonly node: string
  readonly isConfirmed: boolean
}

/** Throws FieldError. */
export function storedAffinity({ spec }: StoredObject): StoredAffinity {
  return under('spec', () => {
    const raw = asRecord(spec)
    const state = text(raw, 'state') ?? ''
    const isOfNode = ['', 'host'].includes(text(raw, 'type') ?? '')
    return { cidr: formatCidr(cidrOf(raw)), node: text(raw, 'node') ?? '', isConfirmed: isOfNode && state.toLowerCase() === 'confirmed' }
  })
}

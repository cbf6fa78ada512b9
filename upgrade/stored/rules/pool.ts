// SPDX-License-Identifier: Apache-2.0
/** Pools: fields of the API before v3, defaults that older versions left unwritten, and what the data plane has not.
 * Layer: upgrade (pure). */
import { formatCidr, isV4, tryParseCidr } from '#lib/base/ip.ts'
import { valueAt, type Edit, type Refusal, type Rule } from '../edit.ts'

const OLD = 'is written so since v3'
const DEFAULT = 'the default of older versions, written out'
const CANONICAL = 'the same prefix, in the one form that it has here'

/** `ipip: {enabled, mode}` and `nat-outgoing`. */
export const oldPoolFields: Rule = (object) => [...oldIpip(object), ...oldNat(object)]

const oldIpip: Rule = (object) => {
  const before = valueAt(object, ['spec', 'ipip'])
  if (before === undefined) return []
  const mode = ipipMode(valueAt(before, ['enabled']), valueAt(before, ['mode']))
  if (mode === undefined) return [{ path: ['spec', 'ipip'], reason: 'must be enabled: true or false, and mode: always or cross-subnet' }]
  const isSaid = valueAt(object, ['spec', 'ipipMode']) !== undefined
  return [
    { path: ['spec', 'ipip'], after: undefined, why: `${OLD}: ipipMode` },
    ...(isSaid ? [] : [{ path: ['spec', 'ipipMode'], after: mode, why: OLD }]),
  ]
}

function ipipMode(enabled: unknown, mode: unknown): string | undefined {
  if (enabled === undefined || enabled === false) return 'Never'
  if (enabled !== true) return undefined
  if (mode === undefined || mode === '') return 'Always'
  const modes: ReadonlyMap<unknown, string> = new Map([
    ['always', 'Always'],
    ['cross-subnet', 'CrossSubnet'],
    ['crosssubnet', 'CrossSubnet'],
  ])
  return typeof mode === 'string' ? modes.get(mode.toLowerCase()) : undefined
}

const oldNat: Rule = (object) => {
  const before = valueAt(object, ['spec', 'nat-outgoing'])
  if (before === undefined) return []
  if (typeof before !== 'boolean') return [{ path: ['spec', 'nat-outgoing'], reason: 'must be true or false' }]
  return [
    { path: ['spec', 'nat-outgoing'], after: undefined, why: `${OLD}: natOutgoing` },
    ...(before ? [{ path: ['spec', 'natOutgoing'], after: true, why: OLD }] : []),
  ]
}

/** `cidr` in the form that others compare as text, and what counted where nothing was written. */
export const poolDefaults: Rule = (object): readonly Edit[] => {
  const said = valueAt(object, ['spec', 'cidr'])
  const cidr = typeof said === 'string' ? tryParseCidr(said) : undefined
  if (cidr === undefined) return []
  const isMissing = (key: string): boolean => valueAt(object, ['spec', key]) === undefined
  const blockSize = Math.max(cidr.bits, isV4(cidr.addr) ? 26 : 122)
  return [
    { path: ['spec', 'cidr'], after: formatCidr(cidr), why: CANONICAL },
    ...(isMissing('blockSize') ? [{ path: ['spec', 'blockSize'], after: blockSize, why: DEFAULT }] : []),
    ...(isMissing('nodeSelector') ? [{ path: ['spec', 'nodeSelector'], after: 'all()', why: DEFAULT }] : []),
  ]
}

export const noIpip: Rule = (object): readonly Refusal[] => {
  const mode = valueAt(object, ['spec', 'ipipMode'])
  return mode === undefined || mode === 'Never'
    ? []
    : [{ path: ['spec', 'ipipMode'], reason: 'IP in IP is not supported: give the pool a vxlanMode, and ipipMode Never, first' }]
}

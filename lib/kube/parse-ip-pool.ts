// SPDX-License-Identifier: Apache-2.0
/** Raw IPPool → model. Layer: lib/kube. */
import type { IPPool } from '../model/ip-pool.ts'
import { asCidr, FieldError, flag, inside, oneOf, text, under } from './fields.ts'
import type { ParseInput } from './fields.ts'

/** A disabled pool is one that gives no more addresses away: what is said of those it gave still holds. */
export function parseIPPool(input: ParseInput): IPPool {
  return inside(input.raw, 'spec', (spec) => {
    const cidr = text(spec, 'cidr')
    if (cidr === undefined) throw new FieldError('cidr', 'is missing')
    if (oneOf(spec, 'ipipMode', { words: ['Never', 'CrossSubnet', 'Always'], absent: 'Never' }) !== 'Never')
      input.refuse(new FieldError('spec.ipipMode', 'is not supported: vxlanMode is'))
    return {
      kind: 'IPPool',
      namespace: '',
      name: input.name,
      cidr: under('cidr', () => asCidr(cidr)),
      natOutgoing: flag(spec, 'natOutgoing') ?? false,
      overlay: oneOf(spec, 'vxlanMode', { words: ['Never', 'CrossSubnet', 'Always'], absent: 'Never' }),
    }
  })
}

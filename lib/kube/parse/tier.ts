// SPDX-License-Identifier: Apache-2.0
/** Raw Tier → model. Layer: lib/kube. */
import { BUILT_IN_TIERS } from '../../model/policy.ts'
import type { Tier } from '../../model/policy.ts'
import { FieldError, inside } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { field, object } from '../schema/shape.ts'
import { number, word } from '../schema/primitives.ts'

export const tierSpec = object({
  order: field('Its place among the tiers, lowest first; last of all when it is missing.', number),
  defaultAction: field(
    'What becomes of a packet that policies of the tier apply to and none decides; Deny when it is missing.',
    word('Deny', 'Pass'),
  ),
})

const ENDS = { Deny: 'deny', Pass: 'pass' } as const

/** The built-in tiers may be written down, but only as they are. */
export function parseTier(input: ParseInput): Tier {
  if (input.name.includes('.')) throw new FieldError('metadata.name', 'must have no "."')
  const builtIn = BUILT_IN_TIERS.find((tier) => tier.name === input.name)
  return inside(input.raw, 'spec', (raw) => {
    const { defaultAction: action, order = builtIn?.order ?? Number.POSITIVE_INFINITY } = tierSpec.read(raw)
    const end = action === undefined ? (builtIn?.end ?? 'deny') : ENDS[action]
    if (builtIn !== undefined && order !== builtIn.order) throw new FieldError('order', `must be ${builtIn.order} in this tier`)
    if (builtIn !== undefined && end !== builtIn.end)
      throw new FieldError('defaultAction', `must be ${builtIn.end === 'deny' ? 'Deny' : 'Pass'} in this tier`)
    return { kind: 'Tier', namespace: '', name: input.name, order, end }
  })
}

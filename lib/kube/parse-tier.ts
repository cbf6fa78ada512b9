// SPDX-License-Identifier: Apache-2.0
/** Raw Tier → model. Layer: lib/kube. */
import { BUILT_IN_TIERS } from '../model/policy.ts'
import type { Tier } from '../model/policy.ts'
import { FieldError, inside, number, oneOf, only } from './fields.ts'
import type { ParseInput } from './fields.ts'

const ENDS = { Deny: 'deny', Pass: 'pass' } as const

/** The built-in tiers may be written down, but only as they are. */
export function parseTier(input: ParseInput): Tier {
  if (input.name.includes('.')) throw new FieldError('metadata.name', 'must have no "."')
  const builtIn = BUILT_IN_TIERS.find((tier) => tier.name === input.name)
  return inside(input.raw, 'spec', (raw) => {
    const spec = only(raw, ['order', 'defaultAction'])
    const order = number(spec, 'order') ?? builtIn?.order ?? Number.POSITIVE_INFINITY
    const action = oneOf(spec, 'defaultAction', { words: ['Deny', 'Pass'], absent: undefined })
    const end = action === undefined ? (builtIn?.end ?? 'deny') : ENDS[action]
    if (builtIn !== undefined && order !== builtIn.order) throw new FieldError('order', `must be ${builtIn.order} in this tier`)
    if (builtIn !== undefined && end !== builtIn.end)
      throw new FieldError('defaultAction', `must be ${builtIn.end === 'deny' ? 'Deny' : 'Pass'} in this tier`)
    return { kind: 'Tier', namespace: '', name: input.name, order, end }
  })
}

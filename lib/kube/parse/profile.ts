// SPDX-License-Identifier: Apache-2.0
/** Raw Profile → model. Layer: lib/kube. */
import type { Profile } from '../../model/policy.ts'
import { inside, under } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { labelMap } from './labels.ts'
import { fieldOr, listed, object } from '../schema/shape.ts'
import { texts } from '../schema/primitives.ts'
import { v3RulesAlone } from './policy/v3-rule.ts'
import { RULE_SHAPES } from '../schema/v3-rules.ts'

export const profileSpec = object({
  ingress: listed('What may come in where no policy decides.', RULE_SHAPES.global.ingress, { most: 1024 }),
  egress: listed('What may go out where no policy decides.', RULE_SHAPES.global.egress, { most: 1024 }),
  labelsToApply: fieldOr({}, 'Labels that its endpoints have besides their own.', texts),
})

export function parseProfile(input: ParseInput): Profile {
  return inside(input.raw, 'spec', (raw) => {
    const given = profileSpec.at(profileSpec.only(raw), 'labelsToApply')
    const labels = under('labelsToApply', () => labelMap(given, input))
    return { kind: 'Profile', namespace: '', name: input.name, labels, ...v3RulesAlone(raw, input.refuse) }
  })
}

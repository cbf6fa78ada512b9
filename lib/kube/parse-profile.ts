// SPDX-License-Identifier: Apache-2.0
/** Raw Profile → model. Layer: lib/kube. */
import type { Profile } from '../model/policy.ts'
import { inside, only } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { labelMap } from './labels.ts'
import { v3RulesAlone } from './v3-rule.ts'

export function parseProfile(input: ParseInput): Profile {
  return inside(input.raw, 'spec', (raw) => {
    const spec = only(raw, ['ingress', 'egress', 'labelsToApply'])
    const labels = inside(spec, 'labelsToApply', (given) => labelMap(given, input))
    return { kind: 'Profile', namespace: '', name: input.name, labels, ...v3RulesAlone(spec, input.refuse) }
  })
}

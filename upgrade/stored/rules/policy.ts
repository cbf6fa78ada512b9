// SPDX-License-Identifier: Apache-2.0
/** Policies: their tier, and the directions that clients used to fill in. Layer: upgrade (pure). */
import { valueAt, type Rule } from '../edit.ts'
import { TIER_LABEL } from '../names.ts'

/** `tier`: as it was found. */
export function tierRule(tier: string): Rule {
  return (object) => {
    const said = valueAt(object, ['spec', 'tier'])
    const isSaid = said === tier || (tier === 'default' && (said === undefined || said === ''))
    return [
      ...(isSaid ? [] : [{ path: ['spec', 'tier'], after: tier, why: 'its name begins with this tier' }]),
      { path: ['metadata', 'labels', TIER_LABEL], after: tier, why: 'policies have their tier as a label since 3.29' },
    ]
  }
}

/** Clients filled it in; what was written straight to the store may lack it. */
export const typesRule: Rule = (object) => {
  const isThere = (key: string): boolean => {
    const value = valueAt(object, ['spec', key])
    return Array.isArray(value) ? value.length > 0 : value !== undefined
  }
  // what goes has no directions
  if (isThere('types') || valueAt(object, ['spec', 'stagedAction']) === 'Delete') return []
  const egress = isThere('egress') ? ['Egress'] : []
  const after = egress.length === 0 || isThere('ingress') ? ['Ingress', ...egress] : egress
  return [{ path: ['spec', 'types'], after, why: 'was missing: the directions that it has rules for' }]
}

// SPDX-License-Identifier: Apache-2.0
/** In which order policies and tiers are asked. Layer: lib/model. */
import { compareText } from '../base/order.ts'
import { BUILT_IN_TIERS, POLICY_KINDS, realKind } from './policy.ts'
import type { Policy, Tier } from './policy.ts'

/** Within one tier: by order; of equal ones those of the whole cluster first, then by namespace, kind and name.
 * Total. */
export function comparePolicies(a: Policy, b: Policy): number {
  return (
    compareOrders(a.order, b.order) ||
    compareText(a.namespace, b.namespace) ||
    rank(a) - rank(b) ||
    compareText(a.name, b.name) ||
    compareText(a.kind, b.kind)
  )
}

function rank(policy: Policy): number {
  return POLICY_KINDS.indexOf(realKind(policy.kind))
}

/** Infinity is no number to subtract from itself. */
function compareOrders(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}

/** All tiers, in order: the cluster's own, and the built-in ones that it does not define itself. */
export function tiersInOrder(tiers: ReadonlyMap<string, Tier>): readonly Tier[] {
  const missing = BUILT_IN_TIERS.filter((tier) => !tiers.has(tier.name))
  return [...tiers.values(), ...missing].sort((a, b) => compareOrders(a.order, b.order) || compareText(a.name, b.name))
}

const DEFAULT_TIER = 'default'

/** The tier in which a policy stands. Where that tier does not exist, or cannot be read, the policy is closed in the
 * default one: what it denied must not be open meanwhile. */
export function tierOf({ tier }: Pick<Policy, 'tier'>, tiers: ReadonlySet<string>): string {
  return tiers.has(tier) ? tier : DEFAULT_TIER
}

/** It has no rules where it stands, and the tier ends in a deny for the endpoints that it selects. */
export function isClosedIn(policy: Pick<Policy, 'tier' | 'closed'>, tier: string): boolean {
  return policy.closed === true || policy.tier !== tier
}

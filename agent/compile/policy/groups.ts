// SPDX-License-Identifier: Apache-2.0
/** Local endpoints that the same policies select, and the lines of rules these make. Layer: agent/compile (pure). */
import { comparePolicies } from '#lib/model/policy-order.ts'
import type { NamedPort, Policy, Scope, Tier } from '#lib/model/policy.ts'
import { selects } from '#lib/model/selector.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { Direction, ExpandedRule } from './expand.ts'
import { plainRule } from './expand.ts'
import { lineOf } from './line.ts'
import type { Line, Stage } from './line.ts'

/** What decides about an endpoint's lines. */
export interface Group {
  readonly key: string
  readonly labels: Labels
  readonly ports: readonly NamedPort[]
  readonly profiles: readonly string[]
  /** all that select it, of all views, in order */
  policies: readonly Policy[]
}

/** A line that is asked for. */
export interface LineQuery {
  readonly group: Group
  readonly direction: Direction
  readonly scopes: readonly Scope[]
  /** the policies of the view */
  readonly isIn: (policy: Policy) => boolean
}

/** Where the rules come from. */
export interface Rules {
  readonly tiers: readonly Tier[]
  policy(policy: Policy, direction: Direction, ownPorts: readonly NamedPort[]): readonly ExpandedRule[]
  /** of profiles that there is no object of as well */
  profile(name: string, direction: Direction, ownPorts: readonly NamedPort[]): readonly ExpandedRule[]
}

/** undefined: no policy selects the endpoint, and its profiles allow everything. */
export function groupLine(query: LineQuery, rules: Rules): Line | undefined {
  const { group, direction, scopes } = query
  const policies = group.policies.filter((policy) => policy[direction] !== undefined && scopes.includes(policy.scope) && query.isIn(policy))
  const tiers = rules.tiers.flatMap((tier) => tierStage(tier, { policies, group, direction }, rules))
  const profiles = group.profiles.map((name) => ({ rules: rules.profile(name, direction, group.ports), end: undefined }))
  const line = lineOf([...tiers, ...profiles], plainRule('deny', `no policy ${direction}`))
  return tiers.length === 0 && line.rules.length === 1 && line.rules[0]?.rule.action === 'allow' ? undefined : line
}

/** None where no policy of the tier selects the endpoint. */
function tierStage(
  tier: Tier,
  { policies, group, direction }: Pick<LineQuery, 'group' | 'direction'> & { readonly policies: readonly Policy[] },
  rules: Rules,
): readonly Stage[] {
  const own = policies.filter((policy) => policy.tier === tier.name)
  if (own.length === 0) return []
  const denies = tier.end === 'deny' || own.some((policy) => policy.closed === true)
  return [
    {
      rules: own.flatMap((policy) => rules.policy(policy, direction, group.ports)),
      end: denies ? plainRule('deny', `Tier/${tier.name} ${direction} end`) : undefined,
    },
  ]
}

/** Of all policies, those that select the labels, in order. */
export function selecting(policies: Iterable<Policy>, labels: Labels): readonly Policy[] {
  return [...policies].filter((policy) => selects(policy.subject, labels)).sort(comparePolicies)
}

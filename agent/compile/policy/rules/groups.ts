// SPDX-License-Identifier: Apache-2.0
/** Local endpoints that the same policies select, and the lines of rules these make. Layer: agent/compile (pure). */
import { inBatches, type Sliced, type SlicedValues } from '#lib/base/async/slices.ts'
import { DEFAULT_ALLOW_PROFILE, namespaceProfile } from '#lib/model/effective-labels.ts'
import { comparePolicies, isClosedIn, tierOf } from '#lib/model/policy-order.ts'
import type { Direction, NamedPort, Policy, Scope, Tier } from '#lib/model/policy.ts'
import { selects } from '#lib/model/selector/selector.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { ExpandedRule } from './expand.ts'
import { plainRule } from './expand.ts'
import { ruleListOf } from './rule-list.ts'
import type { RuleList, Stage } from './rule-list.ts'

/** What decides about an endpoint's lines. */
export interface Group {
  readonly key: string
  readonly kind: 'pod' | 'host'
  readonly labels: Labels
  readonly ports: readonly NamedPort[]
  readonly profiles: readonly string[]
  /** all that select it, of all views, in order */
  policies: readonly Policy[]
}

/** One of the lines that an endpoint has. */
export interface Slot {
  readonly direction: Direction
  readonly scopes: readonly Scope[]
  /** what comes after the tiers. deny: profiles, then a deny; open: no verdict. Where `tiers` is open, the end of a
   * tier gives no verdict either */
  readonly end: 'deny' | 'open'
  readonly tiers: 'closed' | 'open'
}

const DENY = { end: 'deny', tiers: 'closed' } as const
const SAY_NOTHING = { end: 'open', tiers: 'open' } as const
const FORWARD = { end: 'open', tiers: 'closed' } as const

/** In the order in which a host's are asked: untracked, before services are translated, then of what passes through
 * or of its own. */
export const SLOTS = {
  pod: {
    ingress: { direction: 'ingress', scopes: ['normal', 'forward'], ...DENY },
    egress: { direction: 'egress', scopes: ['normal', 'forward'], ...DENY },
  },
  host: {
    untrackedIngress: { direction: 'ingress', scopes: ['doNotTrack'], ...SAY_NOTHING },
    untrackedEgress: { direction: 'egress', scopes: ['doNotTrack'], ...SAY_NOTHING },
    earlyIngress: { direction: 'ingress', scopes: ['preDNAT'], ...SAY_NOTHING },
    forwardIngress: { direction: 'ingress', scopes: ['forward'], ...FORWARD },
    forwardEgress: { direction: 'egress', scopes: ['forward'], ...FORWARD },
    normalIngress: { direction: 'ingress', scopes: ['normal', 'forward'], ...DENY },
    normalEgress: { direction: 'egress', scopes: ['normal', 'forward'], ...DENY },
  },
} as const satisfies Readonly<Record<Group['kind'], Readonly<Record<string, Slot>>>>

const NAMESPACE_PROFILE = namespaceProfile('')

/** A line that is asked for. */
export interface RuleListQuery {
  readonly group: Group
  readonly slot: Slot
  /** the policies of the view */
  readonly isIn: (policy: Policy) => boolean
  /** as many of a line's as programs look through */
  readonly blocks: number
  /** the namespace has too many rules already */
  readonly isOverfull: (namespace: string) => boolean
}

/** Where the rules come from. */
export interface Rules {
  readonly tiers: readonly Tier[]
  policy(policy: Policy, direction: Direction, ownPorts: readonly NamedPort[] | undefined): SlicedValues<ExpandedRule>
  /** undefined: there is no such profile */
  profile(name: string, direction: Direction, ownPorts: readonly NamedPort[] | undefined): SlicedValues<ExpandedRule> | undefined
}

/** undefined: no policy selects the endpoint, and its profiles allow everything. */
export function* groupRuleList(query: RuleListQuery, rules: Rules): Sliced<RuleList | undefined> {
  const { group, slot } = query
  const { direction } = slot
  const policies = group.policies.filter(
    (policy) => policy[direction] !== undefined && slot.scopes.includes(policy.scope) && query.isIn(policy),
  )
  const names = new Set(rules.tiers.map(({ name }) => name))
  const byTier = Map.groupBy(policies, (policy) => tierOf(policy, names))
  const tiers = rules.tiers.flatMap((tier) => tierStage(tier, { policies: byTier.get(tier.name) ?? [], group, slot }, rules))
  if (tiers.length === 0 && slot.end === 'open') return undefined
  const profiles = slot.end === 'open' ? [] : group.profiles.map((name) => profileStage(name, query, rules))
  const line = yield* ruleListOf([...tiers, ...profiles], plainRule(slot.end, `no policy ${direction}`), query)
  return tiers.length === 0 && line.rules.length === 1 && line.rules[0]?.rule.action === 'allow' ? undefined : line
}

/** A pod's namespace allows everything unless its profile says otherwise, as does the profile that is named so. */
function profileStage(name: string, { group, slot }: RuleListQuery, rules: Rules): Stage {
  const { direction } = slot
  const isOpen = group.kind === 'pod' ? name.startsWith(NAMESPACE_PROFILE) : name === DEFAULT_ALLOW_PROFILE
  const unless = isOpen ? [plainRule('allow', `Profile/${name} ${direction} 0`)] : []
  return { rules: rules.profile(name, direction, ownPorts(group)) ?? unless, end: undefined }
}

/** None where no policy of the tier selects the endpoint. */
function tierStage(
  tier: Tier,
  { policies, group, slot }: { readonly policies: readonly Policy[]; readonly group: Group; readonly slot: Slot },
  rules: Rules,
): readonly Stage[] {
  if (policies.length === 0) return []
  const isClosed = (policy: Policy): boolean => isClosedIn(policy, tier.name)
  const denies = (tier.end === 'deny' && slot.tiers === 'closed') || policies.some(isClosed)
  const asked = policies.filter((policy) => !isClosed(policy))
  return [
    {
      rules: rulesOf(asked, (policy) => rules.policy(policy, slot.direction, ownPorts(group))),
      end: denies ? plainRule('deny', `Tier/${tier.name} ${slot.direction} end`) : undefined,
    },
  ]
}

function* rulesOf(policies: readonly Policy[], rules: (policy: Policy) => SlicedValues<ExpandedRule>): SlicedValues<ExpandedRule> {
  for (const policy of policies) yield* rules(policy)
}

/** A host has many addresses, and what it forwards is for others': its names of ports are looked up by address. */
function ownPorts({ kind, ports }: Group): readonly NamedPort[] | undefined {
  return kind === 'pod' ? ports : undefined
}

/** Of all policies, those that select the labels, in order. */
export function* selecting(policies: Iterable<Policy>, labels: Labels): Sliced<readonly Policy[]> {
  const selected: Policy[] = []
  yield* inBatches(policies, (policy) => {
    if (selects(policy.subject, labels)) selected.push(policy)
  })
  return selected.sort(comparePolicies)
}

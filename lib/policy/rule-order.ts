// SPDX-License-Identifier: Apache-2.0
/** Which policies and profiles an endpoint is under, in order. Layer: lib/policy (pure). */
import { DEFAULT_ALLOW_PROFILE, namespaceProfile, serviceAccountProfile } from '../model/effective-labels.ts'
import type { Labels } from '../model/labels.ts'
import type { Pod } from '../model/pod.ts'
import { comparePolicies, isClosedIn, tierOf, tiersInOrder } from '../model/policy-order.ts'
import { realKind, ruleOf } from '../model/policy.ts'
import type { Direction, HostEndpoint, Policy, Scope, Tier } from '../model/policy.ts'
import { refText } from '../model/ref.ts'
import { selects } from '../model/selector/selector.ts'
import type { Line, RuleList, TierLine } from './walk-rules.ts'
import type { PolicyWorld } from './peers.ts'

/** `staged`: as if the staged policies were real. */
export type View = 'real' | 'staged'

/** The policies of a view, in no particular order. */
export function policiesIn(view: View, policies: Iterable<Policy>): readonly Policy[] {
  const all = [...policies]
  const real = all.filter((policy) => policy.staged === undefined)
  if (view === 'real') return real
  const staged = all.filter((policy) => policy.staged === 'Set' || policy.staged === 'Delete')
  const replaced = new Set(staged.map((policy) => refText({ ...policy, kind: realKind(policy.kind) })))
  return [...real.filter((policy) => !replaced.has(refText(policy))), ...staged.filter((policy) => policy.staged === 'Set')]
}

/** The tiers in which one of these policies selects the labels in this direction. */
export function tierLines(
  world: { readonly tiers: ReadonlyMap<string, Tier>; readonly policies: readonly Policy[] },
  endpoint: { readonly labels: Labels; readonly direction: Direction; readonly scopes: readonly Scope[] },
): readonly TierLine<Policy>[] {
  const { labels, direction, scopes } = endpoint
  const selecting = world.policies
    .filter((policy) => scopes.includes(policy.scope) && policy[direction] !== undefined && selects(policy.subject, labels))
    .sort(comparePolicies)
  const tiers = tiersInOrder(world.tiers)
  const names = new Set(tiers.map(({ name }) => name))
  return tiers.flatMap(({ name, end }) => {
    const policies = selecting.filter((policy) => tierOf(policy, names) === name)
    if (policies.length === 0) return []
    const isClosed = (policy: Policy): boolean => isClosedIn(policy, name)
    return {
      tier: name,
      policies: policies.map((of) => ({ of, rules: isClosed(of) ? [] : (of[direction] ?? []) })),
      end: policies.some(isClosed) ? ('deny' as const) : end,
    }
  })
}

/** What a pod's packets in one direction are judged by. */
export function podLine(
  world: PolicyWorld & { readonly labels: Labels },
  pod: Pick<Pod, 'namespace' | 'serviceAccount'>,
  of: { readonly direction: Direction; readonly view: View },
): Line<Policy> {
  const tiers = tierLines(
    { tiers: world.tiers, policies: policiesIn(of.view, world.policies.values()) },
    { labels: world.labels, direction: of.direction, scopes: ['normal', 'forward'] },
  )
  return { tiers, profiles: podProfiles(world, pod, of.direction), end: 'deny' }
}

const ALLOW_ALL = ruleOf(0, {})

/** A namespace allows everything unless its profile says otherwise; a service account says nothing unless its
 * profile does. */
export function podProfiles(
  { profiles }: Pick<PolicyWorld, 'profiles'>,
  pod: Pick<Pod, 'namespace' | 'serviceAccount'>,
  direction: Direction,
): readonly RuleList<string>[] {
  const namespace = namespaceProfile(pod.namespace)
  const account = serviceAccountProfile(pod.namespace, pod.serviceAccount)
  return [
    { of: namespace, rules: profiles.get(namespace)?.[direction] ?? [ALLOW_ALL] },
    { of: account, rules: profiles.get(account)?.[direction] ?? [] },
  ]
}

/** Those that a host endpoint names, in its order. */
export function hostProfiles(
  { profiles }: Pick<PolicyWorld, 'profiles'>,
  endpoint: Pick<HostEndpoint, 'profiles'>,
  direction: Direction,
): readonly RuleList<string>[] {
  return endpoint.profiles.map((name) => ({
    of: name,
    rules: profiles.get(name)?.[direction] ?? (name === DEFAULT_ALLOW_PROFILE ? [ALLOW_ALL] : []),
  }))
}

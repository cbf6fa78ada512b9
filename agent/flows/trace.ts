// SPDX-License-Identifier: Apache-2.0
/** From the rule that decided a flow, which programs tell, to all that rules said of it. Layer: agent/flows (pure). */
import { END_RULE, UNKNOWN_RULE, type FlowAction, type HitKind, type PolicyHit, type PolicyRef } from '#lib/flows/flow.ts'
import { hostEndpointLabels, namespaceProfile, podLabels } from '#lib/model/effective-labels.ts'
import type { Pod } from '#lib/model/pod.ts'
import { tierOf } from '#lib/model/policy-order.ts'
import type { Action, Direction, HostEndpoint, Policy, PolicyKind, Scope } from '#lib/model/policy.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { Peers, PolicyWorld } from '#lib/policy/peers.ts'
import { policiesIn, tierLines, type View } from '#lib/policy/rule-order.ts'
import { judge, type TierLine } from '#lib/policy/walk-rules.ts'

/** What is asked of one end's rules. */
export interface TraceQuery {
  /** whose rules they are; undefined: of a device that neither end has */
  readonly of: Pod | HostEndpoint | undefined
  readonly direction: Direction
  readonly packet: Packet
  readonly view: View
  /** "NetworkPolicy/shop/db ingress 0", as the agent numbers rules; undefined: no rule was asked */
  readonly rule: string | undefined
  /** what became of the packet; undefined: the rule itself says it */
  readonly action: 'Allow' | 'Deny' | undefined
}

type Tiers = readonly TierLine<Policy>[]

/** Of one state of the world: it remembers which policies an endpoint is under. */
export class Tracer {
  readonly #world: PolicyWorld
  readonly #peers: Peers
  readonly #policies: Record<View, readonly Policy[]>
  readonly #tierNames: ReadonlySet<string>
  /** by endpoint, direction and view */
  readonly #lines = new Map<string, Tiers>()

  constructor(world: PolicyWorld, peers: Peers) {
    this.#world = world
    this.#peers = peers
    this.#policies = { real: policiesIn('real', world.policies.values()), staged: policiesIn('staged', world.policies.values()) }
    this.#tierNames = new Set(world.tiers.keys())
  }

  /** In order: what passed, then what decided. Empty where no rule of this end was asked. */
  hits(query: TraceQuery): readonly PolicyHit[] {
    const tiers = this.#tiersOf(query)
    const last = this.#decider(query, tiers)
    if (last === undefined) return []
    const before = tiers.findIndex(({ tier }) => tier === last.tier)
    return [...this.#passes(query, before < 0 ? tiers : tiers.slice(0, before)), last]
  }

  #tiersOf({ of, direction, view }: TraceQuery): Tiers {
    if (of === undefined) return []
    const key = `${of.kind}/${nameKey(of)} ${direction} ${view}`
    const known = this.#lines.get(key)
    if (known !== undefined) return known
    const [labels, scopes]: [ReturnType<typeof podLabels>, readonly Scope[]] =
      of.kind === 'Pod'
        ? [podLabels(of, this.#world), ['normal', 'forward']]
        : [hostEndpointLabels(of, this.#world), ['normal', 'forward', 'preDNAT']]
    const world = { tiers: this.#world.tiers, policies: this.#policies[view] }
    const tiers = tierLines(world, { labels, direction, scopes })
    this.#lines.set(key, tiers)
    return tiers
  }

  /** Tiers that have passed: by a rule of theirs, or by their end. */
  #passes({ packet, view }: TraceQuery, tiers: Tiers): readonly PolicyHit[] {
    const { hits } = judge({ tiers: tiers.map((tier) => ({ ...tier, end: 'pass' })), profiles: [], end: 'allow' }, packet, this.#peers)
    return hits.flatMap((hit): readonly PolicyHit[] => {
      if (hit.action !== 'pass') return []
      if (hit.kind === 'rule') return [{ ...refOf(hit.policy, hit.tier), action: 'Pass', rule: hit.at }]
      const tier = hit.kind === 'tier-end' ? tiers.find(({ tier: name }) => name === hit.tier) : undefined
      return tier === undefined ? [] : [endOf(tier, view, 'Pass')]
    })
  }

  #decider(query: TraceQuery, tiers: Tiers): PolicyHit | undefined {
    const { of, direction, view, rule, action } = query
    if (rule === undefined) {
      // a pod that no policy selects is under its namespace's profile alone, which programs do not ask
      return of?.kind === 'Pod' && tiers.length === 0 ? profileHit(namespaceProfile(of.namespace), 0, action ?? 'Allow') : undefined
    }
    const { ref, kind, name, at } = partsOf(rule)
    if (kind === 'Profile') return profileHit(name, at, action ?? this.#profileAction(name, direction, at))
    if (kind === 'Tier') return this.#tierEnd(name, tiers, { view, action: action ?? 'Deny' })
    if (!isPolicy(kind)) return profileHit('', UNKNOWN_RULE, action ?? 'Deny')
    const policy = this.#world.policies.get(ref)
    if (policy === undefined) return goneHit(kind, name, { at, action: action ?? 'Allow' })
    const said = policy[direction]?.find((one) => one.at === at)?.action
    return { ...refOf(policy, tierOf(policy, this.#tierNames)), action: action ?? actionOf(said ?? 'deny'), rule: at }
  }

  #tierEnd(name: string, tiers: Tiers, { view, action }: { readonly view: View; readonly action: FlowAction }): PolicyHit {
    const tier = tiers.find((one) => one.tier === name)
    return tier === undefined
      ? { kind: 'EndOfTier', tier: name, namespace: '', name: '', action, rule: END_RULE }
      : endOf(tier, view, action)
  }

  #profileAction(name: string, direction: Direction, at: number): FlowAction {
    const said = this.#world.profiles.get(name)?.[direction].find((one) => one.at === at)?.action
    return actionOf(said ?? 'allow')
  }
}

/** As flows call it: those of Kubernetes have the plain names. */
const HIT_KIND: Readonly<Record<PolicyKind, HitKind>> = {
  GlobalNetworkPolicy: 'GlobalNetworkPolicy',
  StagedGlobalNetworkPolicy: 'StagedGlobalNetworkPolicy',
  NetworkPolicy: 'CalicoNetworkPolicy',
  StagedNetworkPolicy: 'StagedNetworkPolicy',
  KubernetesNetworkPolicy: 'NetworkPolicy',
  StagedKubernetesNetworkPolicy: 'StagedKubernetesNetworkPolicy',
  ClusterNetworkPolicy: 'ClusterNetworkPolicy',
  AdminNetworkPolicy: 'AdminNetworkPolicy',
  BaselineAdminNetworkPolicy: 'BaselineAdminNetworkPolicy',
}

function refOf({ kind, namespace, name }: Policy, tier: string): PolicyRef {
  return { kind: HIT_KIND[kind], tier, namespace, name }
}

/** Asked for the last of its policies; with staged ones in force, for the first. */
function endOf({ tier, policies }: TierLine<Policy>, view: View, action: FlowAction): PolicyHit {
  const trigger = policies.at(view === 'real' ? -1 : 0)?.of
  const end = { kind: 'EndOfTier', tier, namespace: '', name: '', action, rule: END_RULE } as const
  return trigger === undefined ? end : { ...end, trigger: refOf(trigger, tier) }
}

function profileHit(name: string, rule: number, action: FlowAction): PolicyHit {
  return { kind: 'Profile', tier: '', namespace: '', name, action, rule }
}

/** Of a policy that has been removed since. */
function goneHit(kind: PolicyKind, key: string, of: { readonly at: number; readonly action: FlowAction }): PolicyHit {
  const slash = key.indexOf('/')
  const [namespace, name] = slash < 0 ? ['', key] : [key.slice(0, slash), key.slice(slash + 1)]
  return { kind: HIT_KIND[kind], tier: '', namespace, name, action: of.action, rule: of.at }
}

function actionOf(action: Action): FlowAction {
  return action === 'allow' ? 'Allow' : action === 'deny' ? 'Deny' : 'Pass'
}

interface RuleParts {
  /** "NetworkPolicy/shop/db" */
  readonly ref: string
  readonly kind: string
  readonly name: string
  readonly at: number
}

/** "NetworkPolicy/shop/db ingress 0"; of other words ("no policy ingress") the kind is none that there is. */
function partsOf(rule: string): RuleParts {
  const [ref = '', , at = ''] = rule.split(' ')
  const slash = ref.indexOf('/')
  return { ref, kind: ref.slice(0, Math.max(0, slash)), name: ref.slice(slash + 1), at: at === 'end' ? END_RULE : Number(at) }
}

function isPolicy(kind: string): kind is PolicyKind {
  return Object.hasOwn(HIT_KIND, kind)
}

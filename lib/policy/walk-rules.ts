// SPDX-License-Identifier: Apache-2.0
/** Walks tiers, policies and rules in order until one decides. Nothing clever: what compiled tables and programs are
 * measured against. Layer: lib/policy (pure). */
import type { Action, Rule } from '../model/policy.ts'
import { isAbout } from './rule.ts'
import type { Packet } from './packet.ts'
import type { Peers } from './peers.ts'

/** Rules in order, and whose they are. */
export interface RuleList<P> {
  readonly of: P
  readonly rules: readonly Rule[]
}

/** A tier as one endpoint and direction see it: the policies that select the endpoint. */
export interface TierLine<P> {
  readonly tier: string
  /** at least one: other tiers do not matter */
  readonly policies: readonly RuleList<P>[]
  readonly end: 'deny' | 'pass'
}

/** Everything that is asked about an endpoint's packets in one direction. */
export interface Line<P> {
  readonly tiers: readonly TierLine<P>[]
  readonly profiles: readonly RuleList<string>[]
  /** what happens where nothing decides */
  readonly end: 'deny' | 'allow'
}

/** One step of the walk that was taken. */
export type Hit<P> =
  | { readonly kind: 'rule'; readonly tier: string; readonly policy: P; readonly at: number; readonly action: Action }
  | { readonly kind: 'tier-end'; readonly tier: string; readonly action: 'deny' | 'pass' }
  | { readonly kind: 'profile'; readonly profile: string; readonly at: number; readonly action: Action }
  | { readonly kind: 'end'; readonly action: 'deny' | 'allow' }

export interface Judgement<P> {
  readonly action: 'allow' | 'deny'
  /** the last one decided, those before it passed */
  readonly hits: readonly Hit<P>[]
}

export function judge<P>(line: Line<P>, packet: Packet, peers: Peers): Judgement<P> {
  const hits: Hit<P>[] = []
  for (const tier of line.tiers) {
    const hit = inTier(tier, packet, peers)
    hits.push(hit)
    if (hit.action !== 'pass') return { action: hit.action, hits }
  }
  for (const { of, rules } of line.profiles) {
    const rule = rules.find((candidate) => isAbout(candidate, packet, peers))
    if (rule === undefined) continue
    hits.push({ kind: 'profile', profile: of, at: rule.at, action: rule.action })
    if (rule.action !== 'pass') return { action: rule.action, hits }
  }
  hits.push({ kind: 'end', action: line.end })
  return { action: line.end, hits }
}

function inTier<P>({ tier, policies, end }: TierLine<P>, packet: Packet, peers: Peers): Hit<P> {
  for (const { of, rules } of policies) {
    const rule = rules.find((candidate) => isAbout(candidate, packet, peers))
    if (rule !== undefined) return { kind: 'rule', tier, policy: of, at: rule.at, action: rule.action }
  }
  return { kind: 'tier-end', tier, action: end }
}

// SPDX-License-Identifier: Apache-2.0
/** By which rules of a world an endpoint's packets are judged. Layer: upgrade (pure). */
import { podLabels } from '#lib/model/effective-labels.ts'
import type { Direction, Policy, Rule } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { hostStages, untrackedLine } from '#lib/policy/host.ts'
import type { Peers, PolicyWorld } from '#lib/policy/peers.ts'
import { podLine } from '#lib/policy/rule-order.ts'
import type { Hit, Judgement, Line } from '#lib/policy/walk-rules.ts'
import type { Subject } from './classes.ts'

export const STAGES = ['pod', 'untracked', 'early', 'forward', 'normal'] as const
export type Stage = (typeof STAGES)[number]

/** Undefined: there is no such endpoint, or nothing of this stage. */
export type Lines = Readonly<Partial<Record<Stage, Line<Policy> | undefined>>>

export function linesOf(world: PolicyWorld, subject: Subject, direction: Direction): Lines {
  const of = { direction, view: 'real' } as const
  switch (subject.kind) {
    case 'pod':
      return { pod: podLine({ ...world, labels: podLabels(subject.pod, world) }, subject.pod, of) }
    case 'host': {
      const endpoint = world.hostEndpoints.get(subject.endpoint.name)
      return endpoint === undefined ? {} : { ...hostStages(world, endpoint, of), untracked: untrackedLine(world, endpoint, of) }
    }
    case 'outside':
      return {}
  }
}

export function rulesIn({ tiers, profiles }: Line<Policy>): readonly Rule[] {
  return [...tiers.flatMap(({ policies }) => policies.flatMap(({ rules }) => rules)), ...profiles.flatMap(({ rules }) => rules)]
}

/** Where policy of the host says nothing the next stage decides. */
export function verdictText(stage: Stage, { action, hits }: Judgement<Policy>): 'allow' | 'deny' | 'open' {
  return stage !== 'pod' && action === 'allow' && hits.at(-1)?.kind === 'end' ? 'open' : action
}

/** "NetworkPolicy/shop/web rule 0" */
export function decidingText({ hits }: Judgement<Policy>): string {
  const hit = hits.at(-1)
  return hit === undefined ? 'nothing' : hitText(hit)
}

function hitText(hit: Hit<Policy>): string {
  switch (hit.kind) {
    case 'rule':
      return `${refText(hit.policy)} rule ${hit.at}`
    case 'tier-end':
      return `the end of tier ${hit.tier}`
    case 'profile':
      return `Profile/${hit.profile} rule ${hit.at}`
    case 'end':
      return 'no policy'
  }
}

/** Each address is looked up once. */
export function remembered(peers: Peers): Peers {
  const lookUp = <K, V>(find: (key: K) => V): ((key: K) => V) => {
    const known = new Map<K, V>()
    return (key) => {
      const found = known.get(key) ?? find(key)
      known.set(key, found)
      return found
    }
  }
  return { ...peers, labels: lookUp(peers.labels.bind(peers)), nodes: lookUp(peers.nodes.bind(peers)) }
}

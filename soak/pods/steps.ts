// SPDX-License-Identifier: Apache-2.0
/** What can happen to a cluster whose pods come by CNI, one thing after another: a function of the seed alone.
 * Layer: soak (pure). */
import type { EndpointSpec } from '../../testkit/lab/manifests.ts'
import type { ServiceSpec } from '../../testkit/lab/test-service.ts'
import { ANCHORS } from '../cluster.ts'
import type { ChangePlan } from '../run.ts'
import { Random } from '../random.ts'
import { extraPolicies, HUES, NODES } from './cluster.ts'

/** SIGKILL, so many ms after a call of the plugin has begun. */
export interface Cut {
  readonly who: 'shim' | 'agent'
  readonly afterMs: number
}

/** A pod that comes, and how its node fares with it. */
export interface Visitor {
  readonly name: string
  readonly node: string
  readonly hue: string
  /** of its first calls of each kind, in their order; undefined: nothing happens */
  readonly adds: readonly (Cut | undefined)[]
  readonly dels: readonly (Cut | undefined)[]
  /** what its runtime does when ADD has failed: asks again for the same sandbox; takes it away, then tries another;
   * tries another, and takes the first away later */
  readonly then: 'again' | 'another' | 'another-first'
  /** its runtime lets go of the network namespace before DEL */
  readonly netnsFirst: boolean
  /** it is deleted with grace, else from one moment to the next */
  readonly graceful: boolean
}

export type PodStep =
  | { readonly kind: 'come'; readonly pods: readonly Visitor[] }
  | { readonly kind: 'go'; readonly pods: readonly string[] }
  /** it is deleted, and another of its name made in the same moment */
  | { readonly kind: 'replace'; readonly pod: Visitor }
  /** SIGKILL; started again so many steps later */
  | { readonly kind: 'server' | 'store'; readonly back: number }
  | { readonly kind: 'agent'; readonly node: string; readonly back: number }
  /** a runtime has its plugins forget all that it does not know */
  | { readonly kind: 'gc'; readonly node: string }
  | { readonly kind: 'policies'; readonly objects: readonly object[] }
  | { readonly kind: 'service'; readonly change: Partial<ServiceSpec> }

type Kind = PodStep['kind']

const WEIGHTS: readonly (readonly [number, Kind])[] = [
  [30, 'come'],
  [20, 'go'],
  [8, 'replace'],
  [3, 'server'],
  [2, 'store'],
  [12, 'agent'],
  [4, 'gc'],
  [12, 'policies'],
  [9, 'service'],
]

/** Pods at a time, so that a machine of two processors follows. */
const MOST = 24
const BURST = 6

export class PodPlan implements ChangePlan<PodStep> {
  readonly #random: Random
  /** the agent of this node is left alone: what it leaks in all that time can be seen */
  readonly survivor: string
  #there: readonly Visitor[] = []
  #count = 0

  constructor(seed: number) {
    this.#random = new Random(seed)
    this.survivor = this.#random.pick(NODES)
  }

  next(): PodStep {
    const random = this.#random
    const kind = random.weighted(WEIGHTS)
    switch (kind) {
      case 'come':
        return this.#there.length >= MOST ? this.#go() : this.#come()
      case 'go':
        return this.#there.length === 0 ? this.#come() : this.#go()
      case 'replace':
        return this.#there.length === 0 ? this.#come() : this.#replace()
      case 'server':
      case 'store':
        return { kind, back: random.below(6) }
      case 'agent':
        return { kind, node: random.pick(NODES.filter((node) => node !== this.survivor)), back: random.below(6) }
      case 'gc':
        return { kind, node: random.pick(NODES) }
      case 'policies':
        return { kind, objects: extraPolicies(random) }
      case 'service':
        return { kind, change: calmChange(random) }
    }
  }

  last(): readonly PodStep[] {
    const pods = this.#there.map(({ name }) => name)
    this.#there = []
    return [
      { kind: 'go', pods },
      { kind: 'policies', objects: [] },
      { kind: 'service', change: CALM },
    ]
  }

  pause(): number {
    return this.#random.chance(0.3) ? 0 : 500 * this.#random.next()
  }

  #come(): PodStep {
    const random = this.#random
    const node = random.chance(0.3) ? random.pick(NODES) : undefined
    const pods = Array.from({ length: 1 + random.below(BURST) }, () => this.#visitor(`v-${++this.#count}`, node ?? random.pick(NODES)))
    this.#there = [...this.#there, ...pods]
    return { kind: 'come', pods }
  }

  #go(): PodStep {
    const random = this.#random
    const going = random.some(this.#there, random.pick([0.1, 0.4, 0.8]))
    const pods = going.length === 0 ? this.#there.slice(0, 1) : going
    this.#there = this.#there.filter((one) => !pods.includes(one))
    return { kind: 'go', pods: pods.map(({ name }) => name) }
  }

  #replace(): PodStep {
    const random = this.#random
    const { name, node } = random.pick(this.#there)
    // as a StatefulSet would: perhaps on another node
    const pod = this.#visitor(name, random.chance(0.6) ? node : random.pick(NODES))
    this.#there = this.#there.map((one) => (one.name === name ? pod : one))
    return { kind: 'replace', pod }
  }

  #visitor(name: string, node: string): Visitor {
    const random = this.#random
    const cuts = (): (Cut | undefined)[] => Array.from({ length: 3 }, () => (random.chance(0.3) ? this.#cut(node) : undefined))
    return {
      name,
      node,
      hue: random.pick(HUES),
      adds: cuts(),
      dels: cuts(),
      then: random.pick(['again', 'another', 'another-first']),
      netnsFirst: random.chance(0.3),
      graceful: random.chance(0.7),
    }
  }

  /** Early ones more often: most calls are over in tens of ms. */
  #cut(node: string): Cut {
    const random = this.#random
    const who = node !== this.survivor && random.chance(0.2) ? 'agent' : 'shim'
    return { who, afterMs: Math.round(120 * random.next() * random.next()) }
  }
}

/** All of its endpoints, each ready. */
export const CALM: Partial<ServiceSpec> = { type: 'NodePort', endpoints: [...ANCHORS], more: { sessionAffinity: 'None' } }

/** Object by object, as controllers write: no flow to one of its endpoints may notice, for they are ready, or leave
 * gracefully. */
function calmChange(random: Random): Partial<ServiceSpec> {
  const endpoints = ANCHORS.map((pod): EndpointSpec => (random.chance(0.7) ? pod : { pod, ready: false, serving: true, terminating: true }))
  return { endpoints, more: random.chance(0.7) ? { sessionAffinity: 'None' } : { sessionAffinity: 'ClientIP' } }
}

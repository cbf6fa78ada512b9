// SPDX-License-Identifier: Apache-2.0
/** What can happen in a soak, one thing after another: a function of the seed alone. Layer: soak (pure). */
import type { ServiceSpec } from '../../testkit/lab/test-service.ts'
import { ANCHORS, LASTING, MOVERS, NODES, phantomNode, phantomPools, SERVICE, VISITORS, WILD } from '../cluster.ts'
import { configuration } from './configurations.ts'
import type { ChangePlan } from '../run.ts'
import { ALL_TRUE, TRUTHS, type Truth, type Truths } from '../marks/marked-flows.ts'
import { podLabels, policyObjects, setObjects, TURNED_BY } from './policies.ts'
import { Random } from '../random.ts'
import { anchored, calm, wild } from './services.ts'

export type Step =
  /** these fields of the service change; it comes if it was not there */
  | { readonly kind: 'service'; readonly index: number; readonly change: Partial<ServiceSpec> }
  | { readonly kind: 'no-service'; readonly index: number }
  | { readonly kind: 'configuration'; readonly felix: object }
  /** nodes and pools that are in manifests only */
  | { readonly kind: 'others'; readonly objects: readonly object[] }
  /** the moving service leaves its endpoint, which goes deaf, for this one */
  | { readonly kind: 'move'; readonly to: string }
  | { readonly kind: 'visitors'; readonly pods: readonly string[] }
  /** tiers and policies, all of them at once; `truths`: of marked flows, from here on */
  | { readonly kind: 'policies'; readonly truths: Truths; readonly objects: readonly object[] }
  | { readonly kind: 'sets'; readonly truths: Truths; readonly objects: readonly object[] }
  | { readonly kind: 'labels'; readonly truths: Truths; readonly labels: Readonly<Record<string, object>> }
  /** SIGKILL; started again so many steps later */
  | { readonly kind: 'kill'; readonly node: string; readonly back: number }

type Kind = 'policies' | 'sets' | 'labels' | 'calm' | 'held' | 'wild' | 'configuration' | 'others' | 'move' | 'visitors' | 'kill'

const WEIGHTS: readonly (readonly [number, Kind])[] = [
  [20, 'policies'],
  [6, 'sets'],
  [8, 'labels'],
  [24, 'wild'],
  [10, 'calm'],
  [8, 'held'],
  [4, 'configuration'],
  [3, 'others'],
  [3, 'move'],
  [2, 'visitors'],
  [4, 'kill'],
]

/** Before anything happens, and before flows are opened. */
export const FIRST: readonly Step[] = [
  { kind: 'policies', truths: ALL_TRUE, objects: policyObjects(new Random(1), ALL_TRUE) },
  { kind: 'sets', truths: ALL_TRUE, objects: setObjects(new Random(1), ALL_TRUE) },
  { kind: 'labels', truths: ALL_TRUE, labels: podLabels(new Random(1), LASTING, ALL_TRUE) },
  { kind: 'service', index: SERVICE.calm, change: { type: 'NodePort', endpoints: [...ANCHORS] } },
  // with affinity packets are translated also where connections could be made to the backend at once
  { kind: 'service', index: SERVICE.held, change: { type: 'NodePort', endpoints: [...ANCHORS], more: { sessionAffinity: 'ClientIP' } } },
  { kind: 'service', index: SERVICE.moving, change: { type: 'NodePort', endpoints: [MOVERS[0]] } },
  { kind: 'service', index: SERVICE.marker, change: { endpoints: [ANCHORS[0]] } },
]

/** So that nodes have what they had at the beginning, but for rows. */
const LAST: readonly Step[] = [
  { kind: 'visitors', pods: [] },
  { kind: 'others', objects: [] },
]

export class Plan implements ChangePlan<Step> {
  readonly #random: Random
  /** the agent of this node is left alone: what it leaks in all that time can be seen */
  readonly survivor: string
  #felix: Readonly<Record<string, unknown>> = {}
  #moving: string = MOVERS[0]
  #truths = ALL_TRUE

  constructor(seed: number) {
    this.#random = new Random(seed)
    this.survivor = this.#random.pick(NODES)
  }

  next(): Step {
    const random = this.#random
    const kind = random.weighted(WEIGHTS)
    switch (kind) {
      case 'policies':
      case 'sets':
      case 'labels':
        return this.#policy(kind)
      case 'wild': {
        const index = SERVICE.firstWild + random.below(WILD)
        return random.chance(0.15) ? { kind: 'no-service', index } : { kind: 'service', index, change: wild(random, index) }
      }
      case 'calm':
        return { kind: 'service', index: SERVICE.calm, change: calm(random) }
      case 'held':
        if (random.chance(0.15)) return { kind: 'no-service', index: SERVICE.held }
        return {
          kind: 'service',
          index: SERVICE.held,
          change: { ...wild(random, SERVICE.held), ...(random.chance(0.7) ? anchored(random) : {}) },
        }
      case 'configuration':
        this.#felix = { ...this.#felix, ...configuration(random) }
        return { kind: 'configuration', felix: this.#felix }
      case 'others':
        return { kind: 'others', objects: this.#others() }
      case 'move':
        this.#moving = random.pick(MOVERS.filter((pod) => pod !== this.#moving))
        return { kind: 'move', to: this.#moving }
      case 'visitors':
        return { kind: 'visitors', pods: random.some(VISITORS) }
      case 'kill':
        return { kind: 'kill', node: random.pick(NODES.filter((node) => node !== this.survivor)), back: random.below(6) }
    }
  }

  pause(): number {
    return this.#random.chance(0.3) ? 0 : 400 * this.#random.next()
  }

  last(): readonly Step[] {
    return LAST
  }

  #policy(kind: 'policies' | 'sets' | 'labels'): Step {
    const random = this.#random
    const truths = this.#turn(...TRUTHS.filter((truth) => TURNED_BY[truth] === kind))
    switch (kind) {
      case 'policies':
        return { kind, truths, objects: policyObjects(random, truths) }
      case 'sets':
        return { kind, truths, objects: setObjects(random, truths) }
      case 'labels':
        return { kind, truths, labels: podLabels(random, [...LASTING, ...VISITORS], truths) }
    }
  }

  /** Each of them is otherwise, or stays. */
  #turn(...which: readonly Truth[]): Truths {
    const turned = this.#random.some(which, 0.4).map((truth) => [truth, !this.#truths[truth]] as const)
    this.#truths = { ...this.#truths, ...Object.fromEntries(turned) }
    return this.#truths
  }

  #others(): object[] {
    const random = this.#random
    const node = random.chance(0.7) ? [phantomNode(4 + random.below(2))] : []
    const pools = random.chance(0.7) ? phantomPools(random.pick(['Never', 'CrossSubnet', 'Always']), random.chance(0.5)) : []
    return [...node, ...pools]
  }
}

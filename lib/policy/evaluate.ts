// SPDX-License-Identifier: Apache-2.0
/** The verdict on a packet, straight from the policies. Layer: lib/policy (pure). */
import { podLabels } from '../model/effective-labels.ts'
import type { Pod } from '../model/pod.ts'
import type { Direction, HostEndpoint, Policy } from '../model/policy.ts'
import { hostStages, untrackedLine } from './host.ts'
import { judge } from './walk-rules.ts'
import type { Judgement, Line } from './walk-rules.ts'
import { podLine } from './rule-order.ts'
import type { View } from './rule-order.ts'
import type { Packet } from './packet.ts'
import { peersOf } from './peers.ts'
import type { Peers, PolicyWorld } from './peers.ts'
import { judgeStages } from './stages.ts'
import type { Passing } from './stages.ts'

interface Asked {
  /** as the endpoint sees it: `ingress` is what comes to it */
  readonly direction: Direction
  /** default: the real policies */
  readonly view?: View
}

/** Takes the world as it is now; make another one when it has changed. */
export class Evaluator {
  readonly #world: PolicyWorld
  readonly #peers: Peers

  constructor(world: PolicyWorld) {
    this.#world = world
    this.#peers = peersOf(world)
  }

  /** By the pod's own policies. */
  pod(pod: Pod, packet: Packet, of: Asked): Judgement<Policy> {
    return judge(this.#podLine(pod, of), packet, this.#peers)
  }

  /** At the pod's interface, where the policies of its node's wildcard endpoint come first: what the pod sends comes
   * in to the host. With `settled`, what passes between pod and host is the pod's policies' business alone. */
  podOn(wildcard: HostEndpoint, pod: Pod, passing: Passing & Asked & { readonly settled: boolean }): Judgement<Policy> {
    const host = hostStages(this.#world, wildcard, { view: 'real', ...passing, direction: inverse(passing.direction) })
    const normal = passing.settled ? undefined : host.normal
    return judgeStages({ ...host, normal, workload: this.#podLine(pod, passing) }, passing, this.#peers)
  }

  /** At an interface of the host, after what is untracked. */
  host(endpoint: HostEndpoint, passing: Passing & Asked): Judgement<Policy> {
    return judgeStages(hostStages(this.#world, endpoint, { view: 'real', ...passing }), passing, this.#peers)
  }

  /** By untracked policies; an allow whose last hit is the end means that they say nothing. */
  untracked(endpoint: HostEndpoint, packet: Packet, of: Asked): Judgement<Policy> {
    return judge(untrackedLine(this.#world, endpoint, { view: 'real', ...of }), packet, this.#peers)
  }

  #podLine(pod: Pod, { direction, view = 'real' }: Asked): Line<Policy> {
    const labels = podLabels(pod, this.#world)
    return podLine({ ...this.#world, labels }, pod, { direction, view })
  }
}

function inverse(direction: Direction): Direction {
  return direction === 'ingress' ? 'egress' : 'ingress'
}

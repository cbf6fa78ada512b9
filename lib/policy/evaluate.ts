// SPDX-License-Identifier: Apache-2.0
/** The verdict on a packet of a pod, straight from the policies. Layer: lib/policy (pure). */
import { podLabels } from '../model/effective-labels.ts'
import type { Pod } from '../model/pod.ts'
import type { Policy } from '../model/policy.ts'
import { judge } from './judge.ts'
import type { Judgement } from './judge.ts'
import { podLine } from './line.ts'
import type { Direction, View } from './line.ts'
import type { Packet } from './packet.ts'
import { peersOf } from './peers.ts'
import type { Peers, PolicyWorld } from './peers.ts'

/** Takes the world as it is now; make another one when it has changed. */
export class Evaluator {
  readonly #world: PolicyWorld
  readonly #peers: Peers

  constructor(world: PolicyWorld) {
    this.#world = world
    this.#peers = peersOf(world)
  }

  get peers(): Peers {
    return this.#peers
  }

  /** The pod's own view: `ingress` is judged where the packet arrives, `egress` where it leaves. */
  pod(pod: Pod, packet: Packet, of: { readonly direction: Direction; readonly view?: View }): Judgement<Policy> {
    const labels = podLabels(pod, this.#world)
    return judge(podLine({ ...this.#world, labels }, pod, { view: 'real', ...of }), packet, this.#peers)
  }
}

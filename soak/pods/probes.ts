// SPDX-License-Identifier: Apache-2.0
/** Each pod that comes is tried at once: what it may reach answers, no client reaches what is closed. Layer: soak. */
import { RequestAgent } from '../../lab/traffic/request-agent.ts'
import type { Lab } from '../../lab/lab.ts'
import { endpointText } from '../../lab/tools/address.ts'
import { addressOf, FAMILIES, NODES, PORTS, PROTOS, type NodeName } from '../../testkit/lab/manifests.ts'
import { NEVER_ECHO } from '../marks/marked-flows.ts'
import type { Check } from '../checks.ts'
import type { Made } from './kubelet.ts'
import type { PodPlaces } from './places.ts'

/** Something was there: an answer, or the pod's own refusal. */
const REACHED = ['ECONNREFUSED', 'ECONNRESET', 'ENDED', 'NO_ANSWER']
const KNOCK = { count: 1, timeoutMs: 300, payload: 2, reply: 0 }

export class Probes {
  readonly #places: PodPlaces
  readonly #askers: ReadonlyMap<string, RequestAgent>
  readonly #running = new Set<Promise<void>>()
  readonly #faults: string[] = []
  #tried = 0
  #knocks = 0

  constructor(lab: Lab, places: PodPlaces) {
    this.#places = places
    this.#askers = new Map(NODES.map((node) => [node, new RequestAgent(lab, `node/${node}`)]))
  }

  /** `isStill`: it has its network, and no call removes it. */
  start(node: string, made: Made, isStill: () => boolean): void {
    const probe = Promise.all([this.#out(node, made, isStill), this.#in(node, made)]).then(() => undefined)
    const settled = probe
      .catch((thrown: unknown) => this.#say(`${made.pod}: ${String(thrown)}`))
      .finally(() => this.#running.delete(settled))
    this.#running.add(settled)
  }

  /** Waits for the last ones. */
  async checks(): Promise<Check[]> {
    await Promise.all(this.#running)
    for (const asker of this.#askers.values()) asker.close()
    const some = this.#tried > 0 && this.#knocks > 0 ? [] : ['there were none']
    return [
      {
        name: `${this.#tried} pods reached their node's server with their first packets, and ${this.#knocks} attempts at what is closed got nowhere`,
        faults: [...some, ...this.#faults],
      },
    ]
  }

  /** Its first packets, to a pod of its own node: what others know of it is not asked. */
  async #out(node: string, made: Made, isStill: () => boolean): Promise<void> {
    const server = FAMILIES.map((family) => addressOf(`${node}-1`, family))
    const obstacle = await this.#places.obstacle({ node, made }, server, PORTS[0])
    if (!isStill()) return
    this.#tried++
    if (obstacle === '') return
    this.#say(
      `${made.pod} on ${node} (${made.addresses.join()}) does not reach ${server.join()}: ${obstacle}; ${await this.#places.drops(node)}`,
    )
  }

  async #in(node: string, made: Made): Promise<void> {
    // not from its own node, whose processes may always
    const asker = this.#askers.get(nextNode(node))
    const ends = made.addresses.flatMap((address) => PROTOS.map((proto) => endpointText({ proto, address, port: NEVER_ECHO })))
    for (const to of ends) {
      const [outcome] = (await asker?.order({ do: 'ask', to, ...KNOCK })) ?? []
      this.#knocks++
      if (outcome === undefined || !('failed' in outcome) || REACHED.includes(outcome.failed))
        this.#say(`${made.pod}: ${to} of node ${nextNode(node)} was heard: ${JSON.stringify(outcome)}`)
    }
  }

  #say(text: string): void {
    this.#faults.push(`${text} at ${new Date().toISOString().slice(11, 23)}`)
  }
}

function nextNode(node: string): NodeName {
  return NODES[(NODES.findIndex((one) => one === node) + 1) % NODES.length] ?? 'a'
}

// SPDX-License-Identifier: Apache-2.0
/** Node ports as clients outside the node reach them, asked before a node changes and after. Layer: operator.
 *
 * What did not answer before is not asked for: a firewall may keep node ports from the operator's node. */
import type { Clock } from '#lib/base/clock.ts'
import { connects } from '#lib/base/os/connects.ts'
import { answersName } from '#lib/base/os/name-server.ts'
import type { Proof } from '#lib/kube/objects/node-network-status.ts'
import type { NodeFound } from '../observed.ts'

/** Of one node so many are asked, by each protocol. */
const MOST = 8
/** behind the place of a name server */
const UDP = '/UDP'
/** A node port that does not answer for so long is silent. */
export const PATIENCE_MS = 5000
const AGAIN_MS = 250

/** Node ports that a proof names, as they stand in a mark: "192.0.2.1:30080", "192.0.2.1:30053/UDP". */
export function outsidePlaces(proof: Proof | undefined, most = Infinity): readonly string[] {
  const { nodePorts = [], udpNodePorts = [] } = proof ?? {}
  return [...nodePorts.slice(0, most), ...udpNodePorts.slice(0, most).map((place) => `${place}${UDP}`)]
}

/** Of a node that is to change. */
export function askedPlaces({ status }: NodeFound): readonly string[] {
  return outsidePlaces(status?.proof, MOST)
}

export class Outside {
  readonly #clock: Clock
  /** by node: what was found silent after that proof of its agent */
  readonly #after = new Map<string, { readonly proof: string; readonly silent: readonly string[] }>()

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock
  }

  /** Node ports of the node that answer now. */
  async answering(node: NodeFound, signal: AbortSignal): Promise<readonly string[]> {
    return await answering(askedPlaces(node), { clock: this.#clock, patienceMs: 0, signal })
  }

  /** Those of `places` that are silent since the node's last proof, each asked for a while once. */
  async silent({ name, status }: NodeFound, places: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    const proof = status?.proof?.at ?? ''
    const before = this.#after.get(name)
    if (before?.proof === proof) return before.silent
    const found = await answering(places, { clock: this.#clock, patienceMs: PATIENCE_MS, signal })
    const silent = places.filter((place) => !found.includes(place))
    this.#after.set(name, { proof, silent })
    return silent
  }
}

export interface Asking {
  readonly clock: Clock
  /** for so long one that is silent is asked again; 0: it is asked once */
  readonly patienceMs: number
  readonly signal: AbortSignal
}

/** Those of `places` that answer this process. */
export async function answering(places: readonly string[], { clock, patienceMs, signal }: Asking): Promise<readonly string[]> {
  const until = clock.now() + patienceMs
  const answers = await Promise.all(
    places.map(async (place) => {
      for (;;) {
        if (await doesAnswer(place)) return true
        if (clock.now() >= until) return false
        await clock.sleep(AGAIN_MS, signal)
      }
    }),
  )
  return places.filter((_, at) => answers[at] === true)
}

async function doesAnswer(place: string): Promise<boolean> {
  const isUdp = place.endsWith(UDP)
  const text = isUdp ? place.slice(0, -UDP.length) : place
  const colon = text.lastIndexOf(':')
  const [host, port] = [text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), Number(text.slice(colon + 1))]
  return (await (isUdp ? answersName : connects)(host, port)) !== undefined
}

// SPDX-License-Identifier: Apache-2.0
/** Agents that have had their time to say what a switch waits for, and have not. Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { nodeNetworkStatusOf } from '#lib/kube/objects/node-network-status.ts'
import { waitedFor } from './lock-times.ts'
import type { Situation } from './situation.ts'
import type { Standing } from './standing.ts'

export interface SilentAgent {
  readonly name: string
  /** of the agent, for people */
  readonly why: string
}

/** What agents had said and is gone, as after a NodeNetwork was deleted: from then on they have their time anew. */
export class LostWords {
  readonly #heard = new Set<string>()
  readonly #lostAt = new Map<string, number>()

  /** `nodeNetworks`: by "/node", as they are now. Returns since when those of which words are gone say nothing. */
  saw(nodeNetworks: ReadonlyMap<string, ApiObject>, now: number): ReadonlyMap<string, number> {
    const speaking = new Set(
      [...nodeNetworks.values()].flatMap(({ metadata, status }) => (nodeNetworkStatusOf(status) === undefined ? [] : [metadata.name])),
    )
    for (const name of this.#heard) if (!speaking.has(name)) this.#lostAt.set(name, now)
    this.#heard.clear()
    for (const name of speaking) {
      this.#heard.add(name)
      this.#lostAt.delete(name)
    }
    return this.#lostAt
  }
}

export function silentAgents(situation: Situation): readonly SilentAgent[] {
  return situation.standings.flatMap((standing) => {
    const why = whyOf(standing, situation)
    return why === undefined ? [] : [{ name: standing.node.name, why }]
  })
}

function whyOf({ node, stand }: Standing, { observed, asked }: Situation): string | undefined {
  const isOver = (since: number): boolean => waitedFor(since, observed) >= asked.nodeTimeoutMs
  const seconds = `${asked.nodeTimeoutMs / 1000} s`
  if (stand === 'mute') return isOver(node.agentSince) ? `its agent has said nothing for ${seconds}` : undefined
  if (asked.mode === 'BPF' || stand === 'unready' || stand === 'skipped' || node.status?.kubeProxy === 'Present') return undefined
  const since = observed.proxy.isSettled ? observed.proxy.readySince.get(node.name) : undefined
  return since !== undefined && isOver(since)
    ? `a kube-proxy has been ready for ${seconds}, and its rules do not have the services that the agent asks, in each family`
    : undefined
}

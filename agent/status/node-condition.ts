// SPDX-License-Identifier: Apache-2.0
/** NetworkUnavailable of this node's Node, as schedulers read it, with what goes wrong. Layer: agent/status. */
import { firstFew } from '#lib/base/text/first-few.ts'
import { conditionEntry, findCondition, NETWORK_UNAVAILABLE, saysTheSame, type Condition } from '#lib/kube/objects/conditions.ts'
import type { Due, Subject } from './outbox.ts'
import { lookUp, TIMEOUT_MS, type StatusApi } from './status-api.ts'

/** A start, or a failure that mends itself, takes no longer. */
export const GRACE_MS = 30_000
/** A new message for the same status waits this long: each change of a Node goes to every client that watches Nodes. */
const WORDS_MS = 60_000
/** Others may have written it too. */
const LOOK_MS = 3_600_000
const ABSENT_MS = 60_000
const LONGEST = 1000

export interface NodeFacts {
  /** conditions that readiness waits for and that do not hold, "name: reason" */
  readonly unready: readonly string[]
  /** ms since that is so, or since it is not */
  readonly sinceMs: number
  /** the node was ready once since it was started, under this agent or one before; or what fails keeps no pod away */
  readonly wasReady: boolean
}

/** The condition to write; undefined: it stays as before. The network of a node that was ready goes on whatever fails
 * later. So the condition then names the failure, and keeps no pod away. */
export function wantedCondition({ unready, sinceMs, wasReady }: NodeFacts): Condition | undefined {
  if (unready.length === 0) return { status: 'False', reason: 'NetplaneIsUp', message: 'Netplane has programmed this node' }
  if (sinceMs < GRACE_MS) return undefined
  const message = firstFew(unready).slice(0, LONGEST)
  if (wasReady) return { status: 'False', reason: 'NetplaneIsDegraded', message }
  return { status: 'True', reason: 'NetplaneIsNotReady', message }
}

export interface NodeConditionOptions {
  readonly api: StatusApi
  readonly node: string
  /** "name: reason" */
  readonly unready: () => readonly string[]
  /** pods need not wait for any of it */
  readonly takesPods: () => boolean
  /** under an agent before, since the node was started */
  readonly wasReady: boolean
  /** whether there is such a Node, as far as is known */
  readonly isKnown: () => boolean
  readonly wall: () => number
  /** in [0, 1): so that what all nodes have to say they do not say at once */
  readonly random?: () => number
}

export class NodeCondition implements Subject {
  readonly name = 'node'
  readonly #options: NodeConditionOptions
  readonly #spreadMs: number
  #wasReady: boolean
  #isReady: boolean | undefined
  #since = 0
  /** what the server has, as far as is known */
  #said: Condition | undefined
  #saidAt = -Infinity
  #lookAt = 0

  constructor(options: NodeConditionOptions) {
    this.#options = options
    this.#wasReady = options.wasReady
    this.#spreadMs = GRACE_MS * (options.random ?? Math.random)()
  }

  due(now: number): readonly Due[] {
    const wanted = this.#wanted(now)
    if (!this.#options.isKnown()) {
      // the next Node of this name has heard nothing
      this.#said = undefined
      return []
    }
    if (wanted === undefined) return []
    if (this.#said !== undefined && now < this.#lookAt) {
      if (saysTheSame(this.#said, wanted)) return []
      const isNews = this.#said.status !== wanted.status || this.#said.reason !== wanted.reason
      if (!isNews && now < this.#saidAt + WORDS_MS) return []
    }
    return [{ key: this.#options.node, write: (signal) => this.#write(wanted, now, signal) }]
  }

  #wanted(now: number): Condition | undefined {
    const unready = this.#options.unready()
    const isReady = unready.length === 0
    if (isReady !== this.#isReady) this.#since = now
    this.#isReady = isReady
    this.#wasReady ||= isReady
    const wasReady = this.#wasReady || this.#options.takesPods()
    return wantedCondition({ unready, sinceMs: now - this.#since - this.#spreadMs, wasReady })
  }

  async #write(condition: Condition, now: number, signal: AbortSignal): Promise<void> {
    const { api, node, wall } = this.#options
    const named = { apiVersion: 'v1', kind: 'Node', name: node }
    const object = await lookUp(api, named, signal)
    const found = object && findCondition(object, NETWORK_UNAVAILABLE)
    if (object !== undefined && !saysTheSame(found, condition)) {
      const time = new Date(wall()).toISOString()
      const entry = { ...conditionEntry({ type: NETWORK_UNAVAILABLE, condition, found, now: time }), lastHeartbeatTime: time }
      await api.patch(
        named,
        { status: { conditions: [entry] } },
        { type: 'strategic', subresource: 'status', signal, timeoutMs: TIMEOUT_MS },
      )
    }
    this.#said = condition
    this.#saidAt = now
    this.#lookAt = now + (object === undefined ? ABSENT_MS : LOOK_MS * (1 + Math.random()))
  }
}

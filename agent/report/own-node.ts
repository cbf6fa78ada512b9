// SPDX-License-Identifier: Apache-2.0
/** Whether this node has an object in the sources with the addresses it needs, for log and health. Layer: agent. */
import type { Condition, Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'

/** Condition: the sources have an object of this node. Without it nothing is applied, and that makes the node unready;
 * when it goes later, what was applied stays. */
export const NODE_KNOWN = 'node.known'
/** Condition: that object has an address. Without one the node has no tunnel, and its pods do not leave as the node. */
export const NODE_ADDRESS = 'node.address'
/** Condition: it has one of each family that its pods have. Neither load balancers nor rollouts wait for it: services
 * of the family that it has are served, and one pool of both families must not stop every node of a cluster. */
export const NODE_ADDRESS_FAMILY = 'node.address-family'

const EVENTS = {
  [NODE_KNOWN]: { failed: 'node.lost', passed: 'node.found' },
  [NODE_ADDRESS]: { failed: 'node.address-lost', passed: 'node.address-found' },
  [NODE_ADDRESS_FAMILY]: { failed: 'node.address-family-lost', passed: 'node.address-family-found' },
} as const

export class OwnNodeReport {
  readonly #health: Health
  readonly #log: Log
  /** by condition, why it does not hold */
  readonly #failing = new Map<string, string>()

  constructor({ health, log }: { readonly health: Health; readonly log: Log }) {
    this.#health = health
    this.#log = log
    health.expect(NODE_KNOWN, 'none')
    health.expect(NODE_ADDRESS, 'readiness')
    health.expect(NODE_ADDRESS_FAMILY, 'none')
  }

  /** By condition, why it does not hold; undefined: it does. Says what is new. */
  note(reasons: Readonly<Record<keyof typeof EVENTS, string | undefined>>): void {
    this.#note(NODE_KNOWN, reasons[NODE_KNOWN])
    this.#note(NODE_ADDRESS, reasons[NODE_ADDRESS])
    this.#note(NODE_ADDRESS_FAMILY, reasons[NODE_ADDRESS_FAMILY])
  }

  #note(condition: keyof typeof EVENTS, reason: string | undefined): void {
    const before = this.#failing.get(condition)
    if (reason === undefined) {
      this.#failing.delete(condition)
      this.#health.pass(condition)
      if (before !== undefined) this.#log.info({}, EVENTS[condition].passed)
      return
    }
    this.#failing.set(condition, reason)
    this.#health.fail(condition, reason)
    if (reason !== before) this.#log.warn({ reason }, EVENTS[condition].failed)
  }
}

/** What readiness waits for and pods have to wait for as well. They do not wait for the node's address: a cloud's
 * controller that says it may have to run here first. */
export function keepsPodsAway(health: Pick<Health, 'unready'>): readonly Condition[] {
  return health.unready().filter(({ name }) => name !== NODE_ADDRESS)
}

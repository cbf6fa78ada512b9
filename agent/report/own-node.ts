// SPDX-License-Identifier: Apache-2.0
/** Whether this node's own object is in the sources, for log and health. Layer: agent. */
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'

/** Condition: the sources have an object of this node. Without it nothing is applied, and that makes the node unready;
 * when it goes later, what was applied stays. */
export const NODE_KNOWN = 'node.known'

export class OwnNodeReport {
  readonly #health: Health
  readonly #log: Log
  /** undefined: it is there, or nothing was said yet */
  #missing: string | undefined

  constructor({ health, log }: { readonly health: Health; readonly log: Log }) {
    this.#health = health
    this.#log = log
    health.expect(NODE_KNOWN, 'none')
  }

  /** `missing`: why it is not there. Says what is new. */
  note(missing: string | undefined): void {
    const before = this.#missing
    this.#missing = missing
    if (missing === undefined) this.#health.pass(NODE_KNOWN)
    else this.#health.fail(NODE_KNOWN, missing)
    if (missing === before) return
    if (missing === undefined) this.#log.info({}, 'node.found')
    else this.#log.warn({ reason: missing }, 'node.lost')
  }
}

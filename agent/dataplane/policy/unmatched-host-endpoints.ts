// SPDX-License-Identifier: Apache-2.0
/** Says which host endpoints of this node protect nothing, because no device is theirs: log and condition.
 * Layer: agent/dataplane. */
import { firstFew } from '#lib/base/first-few.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'

/** Condition: each host endpoint of this node is some device's. */
export const HOST_ENDPOINTS = 'policy.host-endpoints'

export class UnmatchedHostEndpoints {
  readonly #log: Log
  readonly #health: Health
  /** by ref: why */
  #said: ReadonlyMap<string, string> = new Map()

  constructor({ log, health }: { readonly log: Log; readonly health: Health }) {
    this.#log = log
    this.#health = health
    health.expect(HOST_ENDPOINTS, 'none')
  }

  /** By ref, why no device is its own. */
  get strays(): ReadonlyMap<string, string> {
    return this.#said
  }

  /** All there are; says what is new. */
  note(strays: ReadonlyMap<string, string>): void {
    const before = this.#said
    this.#said = strays
    for (const [endpoint, reason] of strays)
      if (before.get(endpoint) !== reason) this.#log.warn({ endpoint, reason }, 'policy.host-endpoint-stray')
    for (const endpoint of before.keys()) if (!strays.has(endpoint)) this.#log.info({ endpoint }, 'policy.host-endpoint-mended')
    if (strays.size === 0) this.#health.pass(HOST_ENDPOINTS)
    else this.#health.fail(HOST_ENDPOINTS, firstFew([...strays].map(([endpoint, reason]) => `${endpoint}: ${reason}`)))
  }
}

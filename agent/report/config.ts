// SPDX-License-Identifier: Apache-2.0
/** Which settings are in force and which layer set them, for log, health, metrics and the page /config.
 * Layer: agent. */
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Page, Pages } from '#lib/obs/http.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Config } from '../config/config.ts'
import type { InForce, Resolved } from '../config/resolve.ts'
import { allFields } from '../config/schema.ts'

/** Condition: nothing waits for the next start. */
const CONDITION = 'config.in-force'
const BUILT_IN = 'built-in'

export class ConfigReport {
  readonly #health: Health
  readonly #log: Pick<Log, 'info' | 'warn'>
  #resolved: Resolved | undefined

  constructor({ health, log }: { readonly health: Health; readonly log: Pick<Log, 'info' | 'warn'> }) {
    this.#health = health
    this.#log = log
    health.expect(CONDITION, 'none')
  }

  /** Logs what is other than before. */
  note(resolved: Resolved): void {
    const before = this.#resolved?.inForce ?? new Map<string, InForce>()
    const changed = allFields.filter(({ name }) => !deepEqual(before.get(name), resolved.inForce.get(name)))
    const waited = this.#resolved?.waiting
    this.#resolved = resolved
    for (const { name } of changed) {
      const { raw, origin } = resolved.inForce.get(name) ?? { raw: null, origin: BUILT_IN }
      this.#log.info({ field: name, value: raw, from: origin }, 'configuration.applied')
    }
    const { waiting } = resolved
    if (waiting.length === 0) this.#health.pass(CONDITION)
    else this.#health.fail(CONDITION, `at the agent's next start: ${waiting.join(', ')}`)
    if (waiting.length > 0 && !deepEqual(waiting, waited)) this.#log.warn({ fields: waiting }, 'configuration.deferred')
  }

  /** undefined before the sources are known */
  get config(): Config | undefined {
    return this.#resolved?.config
  }

  /** How many fields have their value from where; nothing before there is a configuration. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    if (this.#resolved === undefined) return counts
    for (const from of ['environment', 'file', 'node', 'default', 'last good', BUILT_IN]) counts.set(from, 0)
    for (const { name } of allFields) {
      const from = this.#resolved.inForce.get(name)?.origin ?? BUILT_IN
      counts.set(from, (counts.get(from) ?? 0) + 1)
    }
    return counts
  }

  get waiting(): number {
    return this.#resolved?.waiting.length ?? 0
  }

  /** /config: every field, its value as written, and the layer that set it; what is refused, with why. */
  get pages(): Pages {
    return { '/config': () => this.#page() }
  }

  #page(): Page {
    const resolved = this.#resolved
    if (resolved === undefined) return { status: 503, type: 'application/json', body: '{"reason":"the sources are not known yet"}\n' }
    const fields = allFields.map(({ name, fallbackText, change }) => {
      const { raw, origin } = resolved.inForce.get(name) ?? { raw: fallbackText, origin: BUILT_IN }
      const waits = resolved.waiting.includes(name) ? { waitsForRestart: true } : {}
      return [name, { value: raw, from: origin, takesEffect: change === 'live' ? 'at once' : 'at the next start', ...waits }] as const
    })
    const body = { fields: Object.fromEntries(fields), refused: resolved.rejected }
    return { status: 200, type: 'application/json', body: `${JSON.stringify(body, undefined, 2)}\n` }
  }
}

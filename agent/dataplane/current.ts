// SPDX-License-Identifier: Apache-2.0
/** What is loaded now, what it takes the place of, and when that may go. Layer: agent/dataplane. */
import { backoffMs } from '#lib/base/backoff.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { same } from '#lib/base/same.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { generationPins, repinMaps } from './drift.ts'
import { load, type Configuration, type Loaded, type LoadOptions } from './loaded.ts'
import { conditionOf } from './phases.ts'
import { dropGenerations } from './programs.ts'

export interface CurrentOptions extends LoadOptions {
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
}

const RETRY = { firstMs: 500, maxMs: 60_000 }

export class Current implements Disposable {
  readonly #options: CurrentOptions
  #loaded: Loaded | undefined
  #for: Configuration | undefined
  /** pins that the generation was made with */
  #pins = 0
  /** still at work at some hooks, until all run what is loaded */
  #outgoing: Loaded[] = []
  #settled = true
  #failures = 0
  #notBefore = 0

  constructor(options: CurrentOptions) {
    this.#options = options
  }

  get loaded(): Loaded | undefined {
    return this.#loaded
  }

  /** false while hooks still run, or may run, what was loaded before */
  get settled(): boolean {
    return this.#settled
  }

  /** Loads if that is needed and due. True when something else is loaded than before. A failure leaves what is there at work. */
  async ensure(wanted: Configuration): Promise<boolean> {
    if (same(wanted, this.#for) || this.#options.clock.now() < this.#notBefore) return false
    const start = this.#options.clock.now()
    try {
      const fresh = await load(wanted, this.#options)
      if (this.#loaded !== undefined) this.#outgoing.push(this.#loaded)
      this.#loaded = fresh
      this.#for = wanted
      this.#pins = generationPins(this.#options.pins, fresh.generation.id)
      this.#settled = false
      this.#failures = 0
      this.#say(fresh, this.#options.clock.now() - start)
      return true
    } catch (thrown) {
      this.#notBefore = this.#options.clock.now() + backoffMs(RETRY, this.#failures++)
      this.#options.health.fail(conditionOf('programs'), errorText(thrown))
      this.#options.log.error({ error: thrown }, 'programs.refused')
      return false
    }
  }

  /** ms until a failed load is due again; undefined when there is none */
  retryMs(): number | undefined {
    return this.#failures === 0 ? undefined : Math.max(0, this.#notBefore - this.#options.clock.now())
  }

  /** Every hook runs what is loaded: the rest goes. */
  async settle(): Promise<void> {
    const loaded = this.#loaded
    if (this.#settled || loaded === undefined) return
    this.#settled = true
    const copied = await loaded.shared.finish()
    const dropped = dropGenerations(this.#options.pins, loaded.generation.id)
    for (const one of this.#outgoing.splice(0)) one[Symbol.dispose]()
    if (dropped.length > 0 || copied > 0) this.#options.log.info({ dropped, copied }, 'programs.retired')
  }

  /** Looks for pins that are gone; returns what is. Maps are pinned again at once. A generation that lost a pin is loaded anew by the
   * next {@link ensure}: slow paths are reached through arrays that empty with their last pin. */
  checkPins(): string[] {
    const loaded = this.#loaded
    if (loaded === undefined || this.#for === undefined) return []
    const lost = repinMaps(this.#options.pins, loaded.shared).map((name) => `map ${name}`)
    if (generationPins(this.#options.pins, loaded.generation.id) >= this.#pins) return lost
    this.#for = undefined
    return [...lost, `programs ${loaded.generation.id}`]
  }

  /** Lets go of every handle; what is pinned goes on. */
  [Symbol.dispose](): void {
    for (const one of [...this.#outgoing, this.#loaded]) one?.[Symbol.dispose]()
  }

  #say({ generation, shared }: Loaded, ms: number): void {
    const { adopted, created, replaced } = shared
    this.#options.health.pass(conditionOf('programs'))
    this.#options.log.info(
      { generation: generation.id, adopted: generation.adopted, maps: { adopted: adopted.length, created, replaced }, ms: Math.round(ms) },
      'programs.ready',
    )
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Programs and maps that are loaded before it is known whether they are wanted. Their pins are apart until then, so whoever finds them
 * finds nothing; only where there are no others. Layer: agent/dataplane. */
import { existsSync } from 'node:fs'
import type { Configuration } from '#agent/compile/desired.ts'
import { same } from '#lib/base/same.ts'
import type { Log } from '#lib/obs/log.ts'
import { generationPins } from './drift.ts'
import { load, type Loaded, type LoadOptions } from './loaded.ts'
import type { Pins } from './pins.ts'
import { removePins } from './pins.ts'

export interface AheadOptions extends LoadOptions {
  readonly log: Log
}

interface Begun {
  readonly configuration: Configuration
  /** undefined: it could not be loaded. Never rejects. */
  readonly loading: Promise<Whole | undefined>
}

interface Whole {
  readonly loaded: Loaded
  /** of its generation */
  readonly pins: number
}

export class Ahead {
  readonly #options: AheadOptions
  readonly #apart: Pins
  #begun: Begun | undefined
  /** there is one guess */
  #isOver = false

  constructor(options: AheadOptions) {
    this.#options = options
    this.#apart = options.pins.apart()
  }

  begin(likely: Configuration): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#begun = { configuration: likely, loading: this.#load(likely) }
  }

  /** What was loaded, in its place now; undefined when nothing was, or it is not what is wanted: then nothing of it is left. */
  async take(wanted: Configuration): Promise<Loaded | undefined> {
    const begun = this.#begun
    this.#begun = undefined
    this.#isOver = true
    const whole = await begun?.loading
    if (begun === undefined || whole === undefined) return undefined
    try {
      if (same(begun.configuration, wanted) && this.#isStill(whole) && this.#options.pins.areNone()) {
        this.#options.pins.adopt(this.#apart)
        return whole.loaded
      }
      this.#options.log.info({ generation: whole.loaded.generation.id }, 'programs.not-wanted')
    } catch (thrown) {
      this.#options.log.warn({ error: thrown }, 'programs.not-placed')
    }
    this.#drop(whole)
    return undefined
  }

  /** Resolves when nothing is being loaded, and what nobody has taken is gone. */
  async end(): Promise<void> {
    const whole = await this.#begun?.loading
    this.#begun = undefined
    if (whole !== undefined) this.#drop(whole)
  }

  async #load(likely: Configuration): Promise<Whole | undefined> {
    const { clock, log, pins } = this.#options
    const start = clock.now()
    try {
      if (!pins.areNone()) return undefined
      // what a crash left
      removePins(this.#apart.dir)
      const loaded = await load(likely, { ...this.#options, pins: this.#apart })
      log.info({ generation: loaded.generation.id, ms: Math.round(clock.now() - start) }, 'programs.ahead')
      return { loaded, pins: generationPins(this.#apart, loaded.generation.id) }
    } catch (thrown) {
      // whoever wants it will be told, if it is so again
      log.info({ error: thrown }, 'programs.not-ahead')
      this.#clear()
      return undefined
    }
  }

  /** Somebody may have taken pins away: maps without are other maps to whoever comes next, and arrays of tail calls are empty then. */
  #isStill({ loaded, pins }: Whole): boolean {
    const { generation, shared } = loaded
    return generationPins(this.#apart, generation.id) >= pins && [...shared.maps.keys()].every((name) => existsSync(this.#apart.map(name)))
  }

  #drop({ loaded }: Whole): void {
    loaded[Symbol.dispose]()
    this.#clear()
  }

  #clear(): void {
    try {
      removePins(this.#apart.dir)
    } catch (thrown) {
      this.#options.log.warn({ error: thrown }, 'programs.not-cleared')
    }
  }
}

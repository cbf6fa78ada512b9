// SPDX-License-Identifier: Apache-2.0
/** Programs and maps that are loaded before it is known whether they are wanted. Their pins are apart until then, so whoever finds them
 * finds nothing; only where there are no others. Layer: agent/dataplane. */
import type { Configuration } from '#agent/compile/desired.ts'
import { errorText } from '#lib/base/errors.ts'
import { same } from '#lib/base/same.ts'
import type { Log } from '#lib/obs/log.ts'
import { generationPins } from './drift.ts'
import { load, type Loaded, type LoadOptions } from './loaded.ts'
import type { Pins } from './pins.ts'
import { removePins } from './pins.ts'

export interface AheadOptions extends LoadOptions {
  readonly log: Log
}

type Outcome = { readonly loaded: Loaded; readonly pins: number } | { readonly failure: unknown }

interface Begun {
  readonly configuration: Configuration
  /** never rejects */
  readonly loading: Promise<Outcome>
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
    if (this.#isOver || !this.#options.pins.areNone) return
    this.#isOver = true
    this.#begun = { configuration: likely, loading: this.#load(likely) }
  }

  /** What was loaded, in its place now; undefined when nothing was, or it is not what is wanted: then nothing of it is left. Throws what
   * `load` would have thrown for the same. */
  async take(wanted: Configuration): Promise<Loaded | undefined> {
    const begun = this.#begun
    this.#begun = undefined
    this.#isOver = true
    if (begun === undefined) return undefined
    const outcome = await begun.loading
    const isWanted = same(begun.configuration, wanted)
    if ('failure' in outcome) {
      if (isWanted) throw outcome.failure
      return undefined
    }
    // arrays of tail calls empty with their pins, which may have been taken away since
    const isWhole = generationPins(this.#apart, outcome.loaded.generation.id) >= outcome.pins
    if (isWanted && isWhole && this.#options.pins.areNone) return this.#place(outcome.loaded)
    this.#drop(outcome.loaded)
    return undefined
  }

  /** Resolves when nothing is being loaded, and what nobody has taken is gone. */
  async end(): Promise<void> {
    const outcome = await this.#begun?.loading
    this.#begun = undefined
    if (outcome !== undefined && 'loaded' in outcome) this.#drop(outcome.loaded)
  }

  async #load(likely: Configuration): Promise<Outcome> {
    const { clock, log } = this.#options
    const start = clock.now()
    try {
      // what a crash left
      removePins(this.#apart.dir)
      const loaded = await load(likely, { ...this.#options, pins: this.#apart })
      log.info({ generation: loaded.generation.id, ms: Math.round(clock.now() - start) }, 'programs.ahead')
      return { loaded, pins: generationPins(this.#apart, loaded.generation.id) }
    } catch (failure) {
      removePins(this.#apart.dir)
      log.info({ reason: errorText(failure) }, 'programs.not-ahead')
      return { failure }
    }
  }

  #place(loaded: Loaded): Loaded {
    try {
      this.#options.pins.takeOver(this.#apart)
      return loaded
    } catch (thrown) {
      this.#drop(loaded)
      throw thrown
    }
  }

  #drop(loaded: Loaded): void {
    removePins(this.#apart.dir)
    loaded[Symbol.dispose]()
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Generations of programs and the maps they share, as pins keep them in the kernel. Layer: agent/dataplane. */
import type { Configuration } from '#agent/compile/desired.ts'
import { load, type GenerationTables, type LoadOptions } from './generation-tables.ts'
import type { Generations } from './loader.ts'
import { dropGenerations } from './programs/generation.ts'
import { repin } from './programs/pin-drift.ts'
import { pinnedRoom } from './programs/shared-maps.ts'

export class PinnedGenerations implements Generations {
  readonly #options: LoadOptions

  constructor(options: LoadOptions) {
    this.#options = options
  }

  load(configuration: Configuration, onVerifying?: () => void): Promise<GenerationTables> {
    return load(configuration, this.#options, onVerifying)
  }

  list(): readonly string[] {
    return this.#options.pins.generations()
  }

  dropOthers(keep: string): readonly string[] {
    return dropGenerations(this.#options.pins, keep)
  }

  repin(loaded: GenerationTables): readonly string[] {
    return repin(this.#options.pins, loaded)
  }

  flowTableSize(): number | undefined {
    return pinnedRoom(this.#options.pins)
  }
}

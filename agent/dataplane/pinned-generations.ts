// SPDX-License-Identifier: Apache-2.0
/** Generations of programs and the maps they share, as pins keep them in the kernel. Layer: agent/dataplane. */
import type { Configuration } from '#agent/compile/desired.ts'
import type { MapName } from '#agent/maps/catalogue.ts'
import { load, type GenerationTables, type LoadOptions } from './generation-tables.ts'
import type { Generations } from './loader.ts'
import { dropGenerations } from './programs/generation.ts'
import { generationPins, repinMaps } from './programs/pin-drift.ts'
import { pinnedRoom, type SharedMaps } from './programs/shared-maps.ts'

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

  countPins(id: string): number {
    return generationPins(this.#options.pins, id)
  }

  dropOthers(keep: string): readonly string[] {
    return dropGenerations(this.#options.pins, keep)
  }

  repinMaps(shared: SharedMaps): readonly MapName[] {
    return repinMaps(this.#options.pins, shared)
  }

  flowTableSize(): number | undefined {
    return pinnedRoom(this.#options.pins)
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Counts what is in the maps that programs fill, now and then and slowly. Layer: agent/dataplane. */
import { errorCode } from '#lib/base/errors.ts'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import type { Log } from '#lib/obs/log.ts'
import { chunksOf, type ChunkedMap } from '../../maps/chunks.ts'

export interface MapUsageOptions {
  readonly clock: Clock
  readonly log: Log
  /** by name */
  readonly maps: () => ReadonlyMap<string, ChunkedMap>
}

const EVERY_MS = 60_000
const ROOM = 4096

export class MapUsage {
  readonly #options: MapUsageOptions
  readonly #entries = new Map<string, number>()

  constructor(options: MapUsageOptions) {
    this.#options = options
  }

  /** as last counted */
  get entries(): ReadonlyMap<string, number> {
    return this.#entries
  }

  run(signal: AbortSignal): Promise<void> {
    return everyMs(this.#options.clock, { ms: EVERY_MS, signal, run: () => this.count() })
  }

  /** A map that is replaced meanwhile is closed, and counted the next time, as is one that cannot be read. */
  async count(): Promise<void> {
    for (const [name, map] of this.#options.maps()) {
      try {
        let entries = 0
        for await (const { count } of chunksOf(map, ROOM)) entries += count
        this.#entries.set(name, entries)
      } catch (thrown) {
        if (errorCode(thrown) !== 'EBADF' && errorCode(thrown) !== 'EAGAIN')
          this.#options.log.warn({ map: name, error: thrown }, 'map.count-failed')
      }
    }
  }
}

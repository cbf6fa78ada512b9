// SPDX-License-Identifier: Apache-2.0
/** Objects that were written and that a watch has not told of yet: what comes next must not go by what was before.
 * Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { placeOf, type Written } from './switch-writer.ts'

/** Another client may have taken the object away in the meantime, and then no watch tells of it. */
const MOST_MS = 5000

interface Entry {
  readonly written: Written
  readonly at: number
}

export class Awaited {
  readonly #entries = new Map<string, Entry>()

  add(all: readonly Written[], now: number): void {
    for (const written of all) this.#entries.set(`${written.named.kind} ${placeOf(written.named)}`, { written, at: now })
  }

  /** `find`: as a watch has it; undefined for what is not there. True when nothing is waited for any more. */
  isOver(find: (written: Written) => ApiObject | undefined, now: number): boolean {
    for (const [key, { written, at }] of this.#entries) if (now - at >= MOST_MS || isSeen(written, find(written))) this.#entries.delete(key)
    return this.#entries.size === 0
  }
}

function isSeen({ object }: Written, found: ApiObject | undefined): boolean {
  if (object === undefined || found === undefined) return object === found
  return object.metadata.uid !== found.metadata.uid || versionOf(found) >= versionOf(object)
}

function versionOf({ metadata: { resourceVersion = '' } }: ApiObject): bigint {
  return /^[0-9]+$/.test(resourceVersion) ? BigInt(resourceVersion) : 0n
}

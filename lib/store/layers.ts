// SPDX-License-Identifier: Apache-2.0
/** Which source's version of an object is in force when several have it. Layer: lib/store. */
import { InternalError } from '../base/errors.ts'
import type { KubeObject } from '../model/snapshot.ts'

/** Earlier sources win. With one source nothing is held twice. */
export class Layers {
  readonly #order: readonly string[]
  readonly #layers: ReadonlyMap<string, Map<string, KubeObject>>

  constructor(sources: readonly string[]) {
    this.#order = sources
    this.#layers = new Map(sources.map((source) => [source, new Map()]))
  }

  /** Notes what `source` has under this key and returns what is in force now. */
  set(source: string, entry: { readonly key: string; readonly object: KubeObject | undefined }): KubeObject | undefined {
    const layer = this.#layers.get(source)
    if (layer === undefined) throw new InternalError(`unknown source ${source}`)
    if (this.#order.length === 1) return entry.object
    if (entry.object === undefined) layer.delete(entry.key)
    else layer.set(entry.key, entry.object)
    return this.#inForce(entry.key)
  }

  #inForce(key: string): KubeObject | undefined {
    for (const source of this.#order) {
      const object = this.#layers.get(source)?.get(key)
      if (object !== undefined) return object
    }
    return undefined
  }
}

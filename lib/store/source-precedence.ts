// SPDX-License-Identifier: Apache-2.0
/** Which source's version of an object is in force when several have it. Layer: lib/store. */
import { InternalError } from '../base/errors.ts'
import { refText, type Ref } from '../model/ref.ts'
import type { KubeObject } from '../model/snapshot.ts'

/** Earlier sources win. With one source nothing is held twice. */
export class SourcePrecedence {
  readonly #order: readonly string[]
  readonly #layers: ReadonlyMap<string, Map<string, KubeObject>>

  constructor(sources: readonly string[]) {
    this.#order = sources
    this.#layers = new Map(sources.map((source) => [source, new Map()]))
  }

  /** Notes what `source` has of this object and returns what is in force now. */
  set(source: string, entry: { readonly ref: Ref; readonly object: KubeObject | undefined }): KubeObject | undefined {
    const layer = this.#layers.get(source)
    if (layer === undefined) throw new InternalError(`unknown source ${source}`)
    if (this.#order.length === 1) return entry.object
    const key = refText(entry.ref)
    if (entry.object === undefined) layer.delete(key)
    else layer.set(key, entry.object)
    return this.#inForce(key)
  }

  #inForce(key: string): KubeObject | undefined {
    for (const source of this.#order) {
      const object = this.#layers.get(source)?.get(key)
      if (object !== undefined) return object
    }
    return undefined
  }
}

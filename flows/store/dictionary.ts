// SPDX-License-Identifier: Apache-2.0
/** Small numbers for what many rows have in common: keys, details of ends, nodes. Layer: flows. */

/** Ids by text. What is new waits until it is written. */
export class Dictionary<T> {
  readonly #ids = new Map<string, number>()
  readonly #most: number
  #next: number
  #fresh: (readonly [id: number, text: string, value: T])[] = []

  /** `most`: of more all are forgotten, and get new ids when they come again. */
  constructor({ next, most = Infinity, known = [] }: DictionaryOptions) {
    this.#next = next
    this.#most = most
    for (const [text, id] of known) this.#ids.set(text, id)
  }

  get size(): number {
    return this.#ids.size
  }

  idOf(text: string, value: T): number {
    const known = this.#ids.get(text)
    if (known !== undefined) return known
    if (this.#ids.size >= this.#most) this.#ids.clear()
    const id = this.#next++
    this.#ids.set(text, id)
    this.#fresh.push([id, text, value])
    return id
  }

  /** Those that have come since it was last asked. */
  takeFresh(): readonly (readonly [id: number, text: string, value: T])[] {
    const fresh = this.#fresh
    this.#fresh = []
    return fresh
  }

  forget(ids: ReadonlySet<number>): void {
    for (const [text, id] of this.#ids) if (ids.has(id)) this.#ids.delete(text)
  }
}

export interface DictionaryOptions {
  /** the first id that is free */
  readonly next: number
  readonly most?: number
  readonly known?: Iterable<readonly [text: string, id: number]>
}

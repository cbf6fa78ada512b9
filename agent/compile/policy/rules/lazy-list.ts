// SPDX-License-Identifier: Apache-2.0
/** A list that is made only as far as it is read, and once for all readers. Layer: agent/compile (pure). */
import type { SlicedValues } from '#lib/base/async/slices.ts'

export class LazyList<T> implements SlicedValues<T> {
  readonly #rest: Iterator<T | undefined>
  readonly #made: T[] = []

  constructor(from: SlicedValues<T>) {
    this.#rest = from[Symbol.iterator]()
  }

  *[Symbol.iterator](): Iterator<T | undefined> {
    for (let at = 0; ;) {
      const made = this.#made.slice(at)
      yield* made
      at += made.length
      if (at < this.#made.length) continue
      const next = this.#rest.next()
      if (next.done === true) return
      if (next.value === undefined) yield
      else this.#made.push(next.value)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
/** A list that is made only as far as it is read, and once for all readers. Layer: agent/compile (pure). */

export class LazyList<T> implements Iterable<T> {
  readonly #rest: Iterator<T>
  readonly #made: T[] = []

  constructor(from: Iterable<T>) {
    this.#rest = from[Symbol.iterator]()
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let at = 0; ;) {
      const made = this.#made.slice(at)
      yield* made
      at += made.length
      if (at < this.#made.length) continue
      const next = this.#rest.next()
      if (next.done === true) return
      this.#made.push(next.value)
    }
  }
}

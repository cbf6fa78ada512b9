// SPDX-License-Identifier: Apache-2.0
/** At most so many pieces of work at once, the others in the order in which they came. Layer: lib/base. */

export class Semaphore {
  #free: number
  readonly #atOnce: number
  readonly #waiting: (() => void)[] = []

  constructor(atOnce: number) {
    this.#atOnce = atOnce
    this.#free = atOnce
  }

  /** nothing runs or waits */
  get idle(): boolean {
    return this.#free === this.#atOnce
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve)
      })
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}

/** One piece of work at once for each key. */
export class KeyedMutex {
  readonly #byKey = new Map<string, Semaphore>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turns = this.#byKey.get(key) ?? new Semaphore(1)
    this.#byKey.set(key, turns)
    try {
      return await turns.run(work)
    } finally {
      if (turns.idle) this.#byKey.delete(key)
    }
  }
}

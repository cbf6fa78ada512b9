// SPDX-License-Identifier: Apache-2.0
/** Has pieces of work wait for those that began before. Layer: agent/ipam. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve()
  #count = 0

  /** nothing runs or waits */
  get idle(): boolean {
    return this.#count === 0
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work)
    this.#last = mine
    this.#count++
    try {
      return await mine
    } finally {
      this.#count--
    }
  }
}

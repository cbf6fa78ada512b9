// SPDX-License-Identifier: Apache-2.0
/** Has pieces of work wait for those that began before. Layer: agent/ipam. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve()

  async run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work)
    this.#last = mine
    return await mine
  }
}

// SPDX-License-Identifier: Apache-2.0
/** How long flows have been idle, roughly: steps of an eighth. Layer: agent/dataplane (pure data structure). */

const STEPS_PER_DOUBLING = 8

export class IdleTimes {
  /** entries by step */
  readonly #steps = new Map<number, number>()

  add(ms: number): void {
    const step = Math.floor(STEPS_PER_DOUBLING * Math.log2(Math.max(1, ms)))
    this.#steps.set(step, (this.#steps.get(step) ?? 0) + 1)
  }

  /** ms that at least so many entries have been idle, if there are so many: the longest such step. */
  longest(entries: number): number {
    let sum = 0
    for (const [step, count] of [...this.#steps].sort(([a], [b]) => b - a)) {
      sum += count
      if (sum >= entries) return 2 ** (step / STEPS_PER_DOUBLING)
    }
    return 0
  }
}

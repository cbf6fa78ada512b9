// SPDX-License-Identifier: Apache-2.0
/** A bound for what rules multiply to: a few kilobytes would keep the agent busy for minutes. Layer: agent/compile
 * (pure). */

/** Names to look up, pairs to try and text to make, for the rules of one policy in one direction. */
const MOST_STEPS = 262_144
const TEXT_A_STEP = 256

export class ExpansionLimit {
  #left = MOST_STEPS

  get isSpent(): boolean {
    return this.#left < 0
  }

  /** False when there is no more: what was to be made with it counts for nothing. */
  spend(steps: number): boolean {
    this.#left -= steps
    return !this.isSpent
  }

  /** Of as many steps as so much text takes. */
  write(text: string): boolean {
    return this.spend(1 + Math.floor(text.length / TEXT_A_STEP))
  }
}

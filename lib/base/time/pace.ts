// SPDX-License-Identifier: Apache-2.0
/** How often each may do something: some at once, then so many a second. Pure. Layer: lib/base. */

export interface PaceOptions {
  readonly perSecond: number
  /** at once, after a while without any */
  readonly burst: number
}

export class Pace {
  readonly #gapMs: number
  readonly #burstMs: number
  /** when the next one is due; the one that was asked about last is at the end */
  readonly #due = new Map<string, number>()

  constructor({ perSecond, burst }: PaceOptions) {
    this.#gapMs = 1000 / perSecond
    this.#burstMs = burst * this.#gapMs
  }

  /** how many are remembered: those who did something lately */
  get size(): number {
    return this.#due.size
  }

  /** How many ms `who` has to wait for its turn, which is then taken. undefined: more than `mostMs`, and none is
   * taken. */
  take(who: string, now: number, mostMs: number): number | undefined {
    this.#forget(now)
    const due = Math.max(this.#due.get(who) ?? -Infinity, now - this.#burstMs) + this.#gapMs
    if (due - now > mostMs) return undefined
    this.#due.delete(who)
    this.#due.set(who, due)
    return Math.max(0, due - now)
  }

  /** Those to whom all is allowed again. */
  #forget(now: number): void {
    for (const [who, due] of this.#due) {
      if (due > now - this.#burstMs) return
      this.#due.delete(who)
    }
  }
}

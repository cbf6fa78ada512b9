// SPDX-License-Identifier: Apache-2.0
/** So many at once, and so many a second from then on. Layer: agent/status (pure). */

export class TokenBucket {
  readonly #most: number
  readonly #perSecond: number
  #left: number
  #at: number

  /** `now`: ms, as later calls have them */
  constructor({ most, perSecond, now }: { readonly most: number; readonly perSecond: number; readonly now: number }) {
    this.#most = most
    this.#perSecond = perSecond
    this.#left = most
    this.#at = now
  }

  /** False: not yet. */
  take(now: number): boolean {
    this.#left = Math.min(this.#most, this.#left + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Times at which the datastore was locked: agents say nothing then, so no node is given up for them.
 * Layer: operator (pure). */

/** Both in ms since 1970. */
export interface LockTime {
  readonly from: number
  readonly to: number
}

/** A switch lasts through no more. */
const MOST = 20

export class LockTimes {
  #all: readonly LockTime[] = []
  /** undefined: nothing was looked at yet */
  #isLocked: boolean | undefined

  /** How it is now. Returns all that is known until now. */
  saw(isLocked: boolean, now: number): readonly LockTime[] {
    const last = this.#all.at(-1)
    if (this.#isLocked === true && last !== undefined) this.#all = this.#all.with(-1, { ...last, to: now })
    // since when one is locked that is found so is not known
    else if (isLocked) this.#all = [...this.#all, { from: this.#isLocked === undefined ? 0 : now, to: now }].slice(-MOST)
    this.#isLocked = isLocked
    return this.#all
  }
}

/** How long it is since then, without the times of locks. */
export function waitedFor(since: number, { now, locks }: { readonly now: number; readonly locks: readonly LockTime[] }): number {
  const locked = locks.map(({ from, to }) => Math.max(0, Math.min(to, now) - Math.max(from, since)))
  return now - since - locked.reduce((sum, one) => sum + one, 0)
}

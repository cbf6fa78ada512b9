// SPDX-License-Identifier: Apache-2.0
/** Several things that may be wrong, each in the log when it comes and when it goes, and all of them the reason of one
 * condition. Layer: lib/obs. */
import { firstFew } from '../base/text/first-few.ts'
import type { Health } from './health.ts'

export interface Reported<T> {
  readonly health: Pick<Health, 'pass' | 'fail'>
  readonly condition: string
  /** why the condition fails; empty: it holds */
  readonly reason: (all: ReadonlyMap<string, T>) => string
  /** is there nothing new to say of it? */
  readonly isSame: (before: T, now: T) => boolean
  /** logs one that is new, or another than it was */
  readonly found: (key: string, now: T, before: T | undefined) => void
  readonly gone: (key: string, last: T) => void
}

export class ConditionReporter<T> {
  readonly #reported: Reported<T>
  #all: ReadonlyMap<string, T> = new Map()

  constructor(reported: Reported<T>) {
    this.#reported = reported
  }

  /** As last noted. */
  get all(): ReadonlyMap<string, T> {
    return this.#all
  }

  /** All there are; says what is new. */
  note(all: ReadonlyMap<string, T>): void {
    const { health, condition, reason, isSame, found, gone } = this.#reported
    const before = this.#all
    this.#all = all
    for (const [key, now] of all) {
      const known = before.get(key)
      if (known === undefined || !isSame(known, now)) found(key, now, known)
    }
    for (const [key, last] of before) if (!all.has(key)) gone(key, last)
    const why = reason(all)
    if (why === '') health.pass(condition)
    else health.fail(condition, why)
  }
}

/** "a: why; b: why and 3 more" */
export function reasonsText<T>(all: ReadonlyMap<string, T>, reasonOf: (one: T) => string): string {
  return firstFew([...all].map(([key, one]) => `${key}: ${reasonOf(one)}`))
}

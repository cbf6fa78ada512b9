// SPDX-License-Identifier: Apache-2.0
/** When deletions may be believed: after a moment in which nothing more left. Layer: lib/manifests. */
import type { Clock } from '../base/clock.ts'

export interface DeletionDelayOptions {
  readonly clock: Clock
  /** the moment, in ms */
  readonly quietMs: number
  readonly onDue: () => void
}

/** Further deletions do not put it off for longer than this, unless most of the directory is going: then it may well
 * go itself. */
const LONGEST_MS = 1_000
const FEW_FILES = 8

export class DeletionDelay {
  readonly #options: DeletionDelayOptions
  #due = false
  #leaving = 0
  #firstAt: number | undefined
  #cancel: (() => void) | undefined

  constructor(options: DeletionDelayOptions) {
    this.#options = options
  }

  /** So many files of so many are leaving: more than before means that something has left just now. */
  note(leaving: number, files: number): void {
    const before = this.#leaving
    this.#leaving = leaving
    if (leaving === 0) this.clear()
    if (leaving <= before) return
    const now = this.#options.clock.now()
    this.#firstAt ??= now
    const most = leaving >= FEW_FILES && leaving > files / 2
    const dueAt = most ? now + this.#options.quietMs : Math.min(now + this.#options.quietMs, this.#firstAt + LONGEST_MS)
    this.#due = false
    this.#cancel?.()
    this.#cancel = this.#options.clock.after(Math.max(0, dueAt - now), () => {
      this.#due = true
      this.#options.onDue()
    })
  }

  get isDue(): boolean {
    return this.#due
  }

  clear(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#due = false
    this.#leaving = 0
    this.#firstAt = undefined
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Collects what was touched until it is worth looking, a few ms later. Layer: lib/manifests. */
import type { Clock } from '../base/clock.ts'

/** `path` is relative to the root; undefined: look at everything. `inPlace`: written to, and perhaps not for the
 * last time. */
export interface Touched {
  readonly path: string | undefined
  readonly inPlace: boolean
}

export interface Agenda {
  readonly paths: ReadonlySet<string>
  /** look at the whole tree */
  readonly everything: boolean
}

/** A rename is complete when we hear of it; a write in place goes on for a while. */
const AFTER_RENAME_MS = 1
const AFTER_WRITE_MS = 4
/** A directory that never stops changing is read nevertheless. */
const LONGEST_WAIT_MS = 50
/** So many events at once that the kernel may have dropped some. */
const FLOOD = 4096

export class ChangeDebouncer {
  /** it is worth looking now */
  isDue = false
  readonly #clock: Clock
  readonly #onDue: () => void
  #paths = new Set<string>()
  #everything = false
  #events = 0
  #firstAt: number | undefined
  #dueAt = 0
  #cancel: (() => void) | undefined
  #cancelLater: (() => void) | undefined

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  note(touched: Touched): void {
    this.#noteAt(touched, touched.inPlace ? AFTER_WRITE_MS : AFTER_RENAME_MS)
  }

  /** As note, unless something else brings it about before. */
  noteLater(touched: Touched, ms: number): void {
    this.#cancelLater?.()
    this.#cancelLater = this.#clock.after(ms, () => {
      this.#cancelLater = undefined
      this.note(touched)
    })
  }

  #noteAt(touched: Touched, delayMs: number): void {
    this.#events++
    if (touched.path === undefined || this.#events > FLOOD) this.#everything = true
    else this.#paths.add(touched.path)
    const now = this.#clock.now()
    this.#firstAt ??= now
    const wanted = now + delayMs
    const dueAt = Math.min(Math.max(this.#dueAt, wanted), this.#firstAt + LONGEST_WAIT_MS)
    if (this.#cancel !== undefined && dueAt <= this.#dueAt) return
    this.#dueAt = dueAt
    this.#cancel?.()
    this.#cancel = this.#clock.after(Math.max(0, dueAt - now), () => {
      this.#cancel = undefined
      this.isDue = true
      this.#onDue()
    })
  }

  take(): Agenda {
    const agenda = { paths: this.#paths, everything: this.#everything }
    this.#paths = new Set()
    this.#everything = false
    this.#events = 0
    this.#firstAt = undefined
    this.#dueAt = 0
    this.isDue = false
    this.#cancel?.()
    this.#cancel = undefined
    return agenda
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#cancelLater?.()
    this.#cancelLater = undefined
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Counts and logs drift: what is found other than we left it, once it is sure that no change of interfaces explains
 * it. Layer: agent/dataplane. */
import { ifindexOf } from '#native'
import type { Log } from '#lib/obs/log.ts'
import type { Attachments } from './attach/attachments.ts'
import type { Place } from './attach/hook.ts'

export interface DriftReportOptions {
  readonly log: Log
  /** those of interfaces */
  readonly hooks: readonly Pick<Attachments<Place>, 'check' | 'wants'>[]
}

export class DriftReport {
  readonly #options: DriftReportOptions
  readonly #counts = new Map<string, number>()
  /** hooks that are not as we left them */
  #suspects: readonly Place[] = []

  constructor(options: DriftReportOptions) {
    this.#options = options
  }

  /** how often something was found so, by part */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  note(part: string, facts: Readonly<Record<string, unknown>>): void {
    this.#counts.set(part, (this.#counts.get(part) ?? 0) + 1)
    this.#options.log.warn({ part, ...facts }, 'drift.found')
  }

  /** Compares hooks of interfaces with the kernel; true when some are to be judged. */
  lookAtHooks(): boolean {
    this.#suspects = [...this.#suspects, ...this.#options.hooks.flatMap((hooks) => hooks.check())]
    return this.#suspects.length > 0
  }

  /** To be called when all changes of interfaces are known. An interface that went takes its programs along, and
   * they may be missed before we hear of it, or of another one under its name. A hook that is wanted still was
   * lost. */
  judgeHooks(): void {
    const isLost = (place: Place): boolean =>
      this.#options.hooks.some((hooks) => hooks.wants(place)) && ifindexOf(place.key.slice(0, place.key.indexOf('/'))) === place.instance
    const lost = this.#suspects.filter(isLost).map(({ key }) => key)
    this.#suspects = []
    if (lost.length > 0) this.note('hooks', { hooks: lost })
  }
}

// SPDX-License-Identifier: Apache-2.0
/** What the sources say of themselves, for log, health and metrics. Layer: agent. */
import { backoffMs } from '#lib/base/backoff.ts'
import { systemClock } from '#lib/base/clock.ts'
import { rejectedText, type Rejected } from '#lib/base/result.ts'
import { MOST_PLACED } from '#lib/manifests/file.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Problem, SourceStatus } from '#lib/store/source.ts'

export interface SourceFacts {
  readonly name: string
  readonly available: boolean
  /** since when it is not; ms since 1970 */
  readonly unavailableSince: number | undefined
  /** things that are not used, or only in part */
  readonly rejected: number
}

/** One outage is logged once; a new reason for it, seldom. The condition has the present reason. */
const SAY_AGAIN = { firstMs: 60_000, maxMs: 3_600_000 }

export class SourceReport {
  readonly #health: Health
  readonly #log: Log
  readonly #now: () => number
  /** of sources that are not available */
  readonly #outages = new Map<string, { readonly said: number; readonly againAt: number }>()
  readonly #status = new Map<string, SourceStatus>()
  readonly #refused = new Map<string, readonly Problem[]>()

  constructor(health: Health, log: Log, now: () => number = () => systemClock.now()) {
    this.#health = health
    this.#log = log
    this.#now = now
  }

  /** Says what is new: a source lost or back, and each problem when it comes and when it goes. */
  note(source: string, now: SourceStatus): void {
    this.#noteAvailable(source, this.#status.get(source), now)
    this.#status.set(source, now)
    this.noteRefusals(source, now.problems)
  }

  /** All that is refused at present for what is wrong with it. */
  noteRefusals(source: string, problems: readonly Problem[]): void {
    const gone = new Set(this.#refused.get(source)?.map(problemText))
    this.#refused.set(source, problems)
    for (const problem of problems)
      if (!gone.delete(problemText(problem))) this.#log.warn({ source, ...problem.rejected, ...placeOf(problem) }, 'object.rejected')
    for (const problem of gone) this.#log.info({ source, problem }, 'object.accepted')
  }

  /** All that is refused at present, by source. */
  get refused(): ReadonlyMap<string, readonly Problem[]> {
    return this.#refused
  }

  list(): SourceFacts[] {
    return [...this.#refused].map(([name, problems]) => ({
      name,
      available: this.#status.get(name)?.unavailable === undefined,
      unavailableSince: this.#status.get(name)?.unavailable?.since,
      rejected: problems.length,
    }))
  }

  /** The last good state stays in force, so the condition fails but the agent stays ready. */
  #noteAvailable(source: string, before: SourceStatus | undefined, { unavailable }: SourceStatus): void {
    const condition = `source.${source}`
    if (before === undefined) this.#health.expect(condition, 'none')
    if (unavailable === undefined) this.#health.pass(condition)
    else this.#health.fail(condition, `${unavailable.reason} (since ${new Date(unavailable.since).toISOString()})`)
    if (unavailable !== undefined) this.#sayOutage(source, unavailable.reason)
    else if (this.#outages.delete(source)) this.#log.info({ source }, 'source.reconnected')
  }

  #sayOutage(source: string, reason: string): void {
    const { said, againAt } = this.#outages.get(source) ?? { said: 0, againAt: -Infinity }
    const now = this.#now()
    if (now < againAt) return
    this.#outages.set(source, { said: said + 1, againAt: now + backoffMs(SAY_AGAIN, said) })
    this.#log.error({ source, reason }, 'source.disconnected')
  }
}

/** With the places of the first few parts of objects: to look for one is to read its file. */
export function withPlaces(
  problems: readonly Omit<Problem, 'place'>[],
  placeOf: (rejected: Rejected) => string | undefined,
): readonly Problem[] {
  const places = new Map<string, string | undefined>()
  return problems.map((problem) => {
    const part = `${problem.rejected.ref} ${problem.rejected.path}`
    if (!places.has(part) && places.size < MOST_PLACED) places.set(part, placeOf(problem.rejected))
    return { place: places.get(part), ...problem }
  })
}

function placeOf({ place }: Problem): { readonly place?: string } {
  return place === undefined ? {} : { place }
}

function problemText(problem: Problem): string {
  return `${problem.place ?? ''} ${rejectedText(problem.rejected)}`.trim()
}

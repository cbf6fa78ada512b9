// SPDX-License-Identifier: Apache-2.0
/** What the sources say of themselves, for log, health and metrics. Layer: agent. */
import { backoffMs } from '#lib/base/backoff.ts'
import { systemClock } from '#lib/base/clock.ts'
import { rejectedText } from '#lib/base/result.ts'
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
    const before = this.#refused.get(source) ?? []
    this.#refused.set(source, problems)
    for (const problem of without(problems, before)) this.#log.warn({ source, ...problem.rejected, ...placeOf(problem) }, 'object.rejected')
    for (const problem of without(before, problems)) this.#log.info({ source, problem: problemText(problem) }, 'object.accepted')
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

function placeOf({ place }: Problem): { readonly place?: string } {
  return place === undefined ? {} : { place }
}

/** Those that are not among the others, wherever in their file they are. */
function without(problems: readonly Problem[], others: readonly Problem[]): readonly Problem[] {
  const textOf = ({ place, ...problem }: Problem): string => problemText({ place: place?.replace(LINE, ''), ...problem })
  const known = new Set(others.map(textOf))
  return problems.filter((problem) => !known.has(textOf(problem)))
}

const LINE = /:\d+$/

function problemText(problem: Problem): string {
  return `${problem.place ?? ''} ${rejectedText(problem.rejected)}`.trim()
}

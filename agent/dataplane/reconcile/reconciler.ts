// SPDX-License-Identifier: Apache-2.0
/** One apply: parts in their order (`pass-order.ts`), each waiting for those it needs; backoff for what fails. Single
 * rows wait by `maps/write-order.ts`, programs by the loader. Layer: agent/dataplane. */
import { backoffMs } from '#lib/base/backoff.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Failure, ReconcileStep } from './step.ts'

export interface Phase {
  readonly part: ReconcileStep
  /** parts that have to be done without a failure before this one may run */
  readonly needs?: readonly string[]
}

export interface ReconcilerOptions {
  /** in order */
  readonly phases: readonly Phase[]
  readonly log: Log
  readonly health: Health
}

export interface PassReport {
  /** changes made, by part; parts that made none are left out */
  readonly done: ReadonlyMap<string, number>
  /** ms after which to go on: 0 when a part has only done some of its work, more when something failed; undefined
   * when nothing is left to do */
  readonly retryMs: number | undefined
}

/** What a part has come to since the agent started. */
export interface PartTotals {
  readonly done: number
  readonly failed: number
}

const RETRY = { firstMs: 100, maxMs: 30_000 }
/** Failures of one part that are named in log and health; there may be thousands of the same. */
const NAMED_FAILURES = 5

/** A part that fails keeps its items pending and does not stop the others, unless they need it. */
export class Reconciler {
  readonly #phases: readonly Phase[]
  readonly #log: Log
  readonly #health: Health
  readonly #totals = new Map<string, PartTotals>()
  /** by part: what was last said about it */
  readonly #said = new Map<string, string>()
  #attempt = 0

  constructor(options: ReconcilerOptions) {
    this.#phases = options.phases
    this.#log = options.log
    this.#health = options.health
    for (const { part } of options.phases) this.#totals.set(part.name, { done: 0, failed: 0 })
  }

  get totals(): ReadonlyMap<string, PartTotals> {
    return this.#totals
  }

  /** Everything that is pending, once. */
  run(): PassReport {
    const done = new Map<string, number>()
    const undone = new Set<string>()
    let more = false
    for (const { part, needs = [] } of this.#phases) {
      if (!part.pending()) this.#say(part.name, [])
      else if (needs.some((need) => undone.has(need))) undone.add(part.name)
      else {
        const outcome = part.apply()
        if (outcome.done > 0) done.set(part.name, outcome.done)
        if (outcome.failures.length > 0 || outcome.undone === true) undone.add(part.name)
        else if (outcome.held !== true && part.pending()) more = true
        this.#count(part.name, outcome.done, outcome.failures.length)
        this.#say(part.name, outcome.failures)
      }
    }
    this.#attempt = undone.size > 0 ? this.#attempt + 1 : 0
    if (more) return { done, retryMs: 0 }
    return { done, retryMs: undone.size > 0 ? backoffMs(RETRY, this.#attempt - 1) : undefined }
  }

  #count(name: string, done: number, failed: number): void {
    const before = this.#totals.get(name) ?? { done: 0, failed: 0 }
    this.#totals.set(name, { done: before.done + done, failed: before.failed + failed })
  }

  /** Once for each set of failures, not once for each attempt. */
  #say(name: string, failures: readonly Failure[]): void {
    const named = failures.slice(0, NAMED_FAILURES).map((one) => `${one.item}: ${one.reason}`)
    const more = failures.length > named.length ? ` and ${failures.length - named.length} more` : ''
    const text = named.join('; ') + more
    const before = this.#said.get(name)
    if (before === text) return
    this.#said.set(name, text)
    if (text === '') {
      this.#health.pass(conditionOf(name))
      if (before !== undefined && before !== '') this.#log.info({ part: name }, 'apply.recovered')
    } else {
      this.#health.fail(conditionOf(name), text)
      this.#log.error({ part: name, failed: failures.length, reasons: named, error: failures[0]?.cause }, 'apply.failed')
    }
  }
}

export function conditionOf(part: string): string {
  return `dataplane.${part}`
}

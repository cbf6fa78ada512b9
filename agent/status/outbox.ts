// SPDX-License-Identifier: Apache-2.0
/** Brings what this node has to say to the API server: one write at a time, not too many, later when it fails.
 * Layer: agent/status.
 *
 * Nothing is queued. Each round asks what differs from what the server is known to have, so what could not be
 * written is not lost, and what is no longer true is not written. */
import { backoffMs, type Backoff } from '#lib/base/backoff.ts'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { DatastoreLockedError, errorText } from '#lib/base/errors.ts'
import { firstFew } from '#lib/base/text/first-few.ts'
import { ApiError, UnreachableError } from '#lib/api/errors.ts'
import type { Gate, Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { TokenBucket } from './token-bucket.ts'

/** Something to be written now. */
export interface Due {
  /** another one than those of the same subject */
  readonly key: string
  /** Looks, and writes what is missing. Rejects with ApiError, UnreachableError or
   * DatastoreLockedError. */
  readonly write: (signal: AbortSignal) => Promise<void>
}

export interface Subject {
  readonly name: string
  /** What is to be written, at this time of the clock, the most important first. Asked every second. */
  due(now: number): readonly Due[]
}

export interface OutboxOptions {
  readonly subjects: readonly Subject[]
  readonly clock: Clock
  readonly health: Health
  readonly log: Log
  /** condition: what the API server is to hear of this node, it has heard */
  readonly condition?: string
  /** what waits for it; nothing unless given */
  readonly gate?: Gate
  /** why it is not so though nothing fails */
  readonly lacks?: () => string | undefined
  readonly retry?: Backoff
  /** in [0, 1): so that not all nodes try again at once */
  readonly random?: () => number
}

interface Failure {
  readonly attempts: number
  /** not tried again before this time of the clock */
  readonly until: number
  readonly reason: string
}

export const WRITTEN = 'status.written'
const ROUND_MS = 1000
const RETRY: Backoff = { firstMs: 1000, maxMs: 120_000 }
/** A node that starts has its pods to say; after that there is what a kubelet starts in a second. */
const AT_ONCE = 20
const PER_SECOND = 5
/** Scope of failures that stop every write. */
const ALL = ''

export class Outbox {
  readonly #options: OutboxOptions
  readonly #bucket: TokenBucket
  readonly #condition: string
  /** by scope: everything, "pods", "pods default/web" */
  readonly #failures = new Map<string, Failure>()
  #said = ''

  constructor(options: OutboxOptions) {
    this.#options = options
    this.#bucket = new TokenBucket({ most: AT_ONCE, perSecond: PER_SECOND, now: options.clock.now() })
    this.#condition = options.condition ?? WRITTEN
    options.health.expect(this.#condition, options.gate ?? 'none')
  }

  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: ROUND_MS, signal, run: () => this.round(signal) })
  }

  /** As much as may be written now. */
  async round(signal: AbortSignal): Promise<void> {
    if (this.#rests(ALL)) return
    const all = this.#options.subjects.map((subject) => ({ subject, due: subject.due(this.#options.clock.now()) }))
    if (all.every(({ due }) => due.length === 0)) this.#failures.delete(ALL)
    for (const { subject, due } of all) this.#forget(subject, due)
    for (const { subject, due } of all) if (!(await this.#each(subject, due, signal))) break
    this.#say()
  }

  /** False: nothing else may be written for now. */
  async #each(subject: Subject, all: readonly Due[], signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options
    for (const one of all) {
      if (this.#rests(subject.name)) return true
      if (this.#rests(scopeOf(subject, one))) continue
      if (!this.#bucket.take(clock.now())) return false
      if (!(await this.#attempt(subject, one, signal))) return false
    }
    return true
  }

  /** False: the server cannot be asked. */
  async #attempt(subject: Subject, due: Due, signal: AbortSignal): Promise<boolean> {
    try {
      await due.write(signal)
      for (const scope of [ALL, subject.name, scopeOf(subject, due)]) this.#failures.delete(scope)
      return true
    } catch (thrown) {
      if (signal.aborted) return false
      // since it was due: it is due again afterwards
      if (thrown instanceof DatastoreLockedError) return true
      if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
      const isAll = isEverybodys(thrown)
      if (isAll || isForbidden(thrown)) this.#fail(isAll ? ALL : subject.name, thrown)
      // longer than what is like it: should it be the only one, the others come first the next time
      if (isAboutIt(thrown)) this.#fail(scopeOf(subject, due), thrown, 2)
      return !isAll
    }
  }

  #fail(scope: string, thrown: ApiError | UnreachableError, times = 1): void {
    const { clock, retry = RETRY, random = Math.random } = this.#options
    const { attempts } = this.#failures.get(scope) ?? { attempts: 0 }
    const { retryAfterMs = 0 } = thrown instanceof ApiError ? thrown : {}
    const wait = Math.max(retryAfterMs, times * backoffMs(retry, attempts, random()))
    this.#failures.set(scope, { attempts: attempts + 1, until: clock.now() + wait, reason: errorText(thrown) })
  }

  #rests(scope: string): boolean {
    const failure = this.#failures.get(scope)
    return failure !== undefined && this.#options.clock.now() < failure.until
  }

  /** What is no longer to be written has not failed. */
  #forget(subject: Subject, due: readonly Due[]): void {
    const wanted = new Set(due.map((one) => scopeOf(subject, one)))
    for (const scope of this.#failures.keys()) if (scope.startsWith(`${subject.name} `) && !wanted.has(scope)) this.#failures.delete(scope)
    if (due.length === 0) this.#failures.delete(subject.name)
  }

  #say(): void {
    const { health, log, lacks } = this.#options
    const reasons = [...new Set([...this.#failures.values()].map(({ reason }) => reason))]
    const text = firstFew(reasons)
    const lacking = reasons.length === 0 ? lacks?.() : text
    if (lacking === undefined) health.pass(this.#condition)
    else health.fail(this.#condition, lacking)
    if (text === this.#said) return
    this.#said = text
    if (text === '') log.info({}, 'status.written')
    else log.warn({ reasons: text }, 'status.write-failed')
  }
}

function scopeOf({ name }: Subject, { key }: Due): string {
  return `${name} ${key}`
}

/** The next one would fare no better. */
function isEverybodys(thrown: ApiError | UnreachableError): boolean {
  return thrown instanceof UnreachableError || thrown.status === 429 || thrown.status >= 500
}

/** The server has looked at it: a webhook fails for it (500), its namespace is going (403). */
function isAboutIt(thrown: ApiError | UnreachableError): boolean {
  return thrown instanceof ApiError && thrown.status !== 429
}

function isForbidden(thrown: ApiError | UnreachableError): boolean {
  return thrown instanceof ApiError && thrown.status === 403
}

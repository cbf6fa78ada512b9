// SPDX-License-Identifier: Apache-2.0
/** Counts what became of exchanges that each had a socket of their own. Layer: lab (tool, pure). */
import type { Answer, RequestsResult } from './results.ts'

const KEPT_ANSWERS = 3

/** Times are in ms of one clock. */
export class RequestStats {
  readonly #latencies: number[] = []
  readonly #answers: Answer[] = []
  readonly #pods = new Map<string, number>()
  readonly #since = new Map<string, number>()
  readonly #failures = new Map<string, number>()
  readonly #failedAt: number[] = []

  /** One that began at `start` and has this answer, whole or not. */
  answer(answer: Answer, { start, end, complete }: { readonly start: number; readonly end: number; readonly complete: boolean }): void {
    if (!complete) this.#count('SHORT')
    this.#latencies.push(end - start)
    this.#pods.set(answer.pod, (this.#pods.get(answer.pod) ?? 0) + 1)
    if (!this.#since.has(answer.pod)) this.#since.set(answer.pod, end)
    const { pod, peer, local, bytes } = answer
    if (this.#answers.length < KEPT_ANSWERS) this.#answers.push({ pod, peer, local, bytes })
  }

  /** One that began at `start` and has none. */
  failure(code: string, start: number): void {
    this.#count(code)
    this.#failedAt.push(start)
  }

  /** `origin`: the clock's zero in ms since 1970 */
  result(origin = 0): RequestsResult {
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    const failures = new Map(this.#failures)
    const take = (code: string): number => {
      const count = failures.get(code) ?? 0
      failures.delete(code)
      return count
    }
    const quantile = (share: number): number =>
      Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(2))
    const wall = (at: number): number => Math.round(origin + at)
    const failedAt = this.#failedAt.toSorted((a, b) => a - b).map(wall)
    const counts = {
      ok: sorted.length,
      refused: take('ECONNREFUSED'),
      reset: take('ECONNRESET'),
      timeouts: take('TIMEOUT') + take('ETIMEDOUT'),
    }
    return {
      event: 'result',
      ...counts,
      errors: Object.fromEntries(failures),
      pods: Object.fromEntries(this.#pods),
      since: Object.fromEntries([...this.#since].map(([pod, at]) => [pod, wall(at)])),
      firstFailedAt: failedAt.at(0) ?? null,
      lastFailedAt: failedAt.at(-1) ?? null,
      latencyMs: sorted.length === 0 ? null : { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) },
      answers: this.#answers,
    }
  }

  #count(code: string): void {
    this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1)
  }
}

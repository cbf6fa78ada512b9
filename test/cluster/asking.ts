// SPDX-License-Identifier: Apache-2.0
/** One HTTP request after another from a place, each on a connection of its own, until stopped: how many were
 * answered. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Spawner } from '../../lab/traffic/traffic.ts'
import { waitFor } from '../../lab/wait.ts'

/** A request that is not answered for so long was lost. */
const SECONDS = 2
const LOOP = `while :; do curl -gks --fail --max-time ${SECONDS} "$0" || echo; echo; sleep 0.05; done`

export class Asking implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #answers = new Map<string, number>()
  #answeredAt: number | undefined
  #longestSilence = 0

  constructor(places: Spawner, place: string, url: string) {
    this.#child = places.spawn(place, ['sh', '-c', LOOP, url])
    this.#child.stderr?.resume()
    if (this.#child.stdout !== null) createInterface({ input: this.#child.stdout }).on('line', (line) => this.#count(line.trim()))
  }

  /** How often each answer came. */
  get answers(): ReadonlyMap<string, number> {
    return this.#answers
  }

  /** Requests without an answer. */
  get lost(): number {
    return this.#answers.get('') ?? 0
  }

  /** Between one answer and the next, and since the last. */
  get longestSilenceMs(): number {
    const silence = this.#answeredAt === undefined ? Infinity : performance.now() - this.#answeredAt
    return Math.max(this.#longestSilence, silence)
  }

  get answered(): number {
    return [...this.#answers].reduce((sum, [answer, count]) => sum + (answer === '' ? 0 : count), 0)
  }

  /** Throws when there were not so many more answers in half a minute. */
  async more(count: number): Promise<void> {
    const goal = this.answered + count
    const came = await waitFor(() => (this.answered >= goal ? true : undefined), { timeoutMs: 30_000 })
    if (came !== true) throw new Error(`${this.answered} answers and ${this.lost} lost, not ${goal} answers in time`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGKILL')
    await closed
  }

  #count(answer: string): void {
    if (answer !== '') {
      const now = performance.now()
      this.#longestSilence = Math.max(this.#longestSilence, now - (this.#answeredAt ?? now))
      this.#answeredAt = now
    }
    this.#answers.set(answer, (this.#answers.get(answer) ?? 0) + 1)
  }
}

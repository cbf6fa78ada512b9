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
const LOOP = `while :; do curl -gks --fail --max-time ${SECONDS} "$0" || printf '!%s' $?; echo; sleep 0.05; done`

export class Asking implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #answers = new Map<string, number>()
  readonly #lost: string[] = []
  readonly #began = performance.now()
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

  /** Each request without an answer: "curl 7 after 0.4 s and 12 answers", with curl's exit code. */
  get lost(): readonly string[] {
    return this.#lost
  }

  /** Between one answer and the next, and since the last. */
  get longestSilenceMs(): number {
    const silence = this.#answeredAt === undefined ? Infinity : performance.now() - this.#answeredAt
    return Math.max(this.#longestSilence, silence)
  }

  get answered(): number {
    return [...this.#answers.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Throws when there were not so many more answers in half a minute. */
  async more(count: number): Promise<void> {
    const goal = this.answered + count
    const came = await waitFor(() => (this.answered >= goal ? true : undefined), { timeoutMs: 30_000 })
    if (came !== true) throw new Error(`${this.answered} answers, not ${goal} in time; lost: ${this.lost.join('; ')}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGKILL')
    await closed
  }

  #count(answer: string): void {
    const now = performance.now()
    // a part of an answer may have come before
    const [, code] = /!(\d+)$/.exec(answer) ?? []
    if (code !== undefined) {
      this.#lost.push(`curl ${code} after ${((now - this.#began) / 1000).toFixed(1)} s and ${this.answered} answers`)
      return
    }
    this.#longestSilence = Math.max(this.#longestSilence, now - (this.#answeredAt ?? now))
    this.#answeredAt = now
    this.#answers.set(answer, (this.#answers.get(answer) ?? 0) + 1)
  }
}

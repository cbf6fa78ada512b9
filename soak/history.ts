// SPDX-License-Identifier: Apache-2.0
/** The steps so far, with their times. Layer: soak. */
import { writeFileSync } from 'node:fs'
import { systemClock } from '#lib/base/clock.ts'

export interface Taken<Step> {
  /** ms since 1970 */
  readonly at: number
  readonly step: Step
}

/** Of one step's text. */
const LONGEST = 300

export class History<Step extends { readonly kind: string }> {
  readonly #taken: Taken<Step>[] = []

  add(step: Step): void {
    this.#taken.push({ at: systemClock.wall(), step })
  }

  get count(): number {
    return this.#taken.length
  }

  /** "wild 12, kill 3": how often each kind was taken */
  summary(): string {
    const counts = new Map<string, number>()
    for (const { step } of this.#taken) counts.set(step.kind, (counts.get(step.kind) ?? 0) + 1)
    return [...counts].map(([kind, count]) => `${kind} ${count}`).join(', ')
  }

  get taken(): readonly Taken<Step>[] {
    return this.#taken
  }

  /** The one that was taken last before the time, in ms since 1970. */
  at(time: number): string {
    const index = this.#taken.findLastIndex((taken) => taken.at <= time)
    return index < 0 ? 'no step' : this.#text(index)
  }

  last(count: number): string[] {
    const from = Math.max(0, this.#taken.length - count)
    return this.#taken.slice(from).map((_, index) => this.#text(from + index))
  }

  /** All steps, whole, a line each. */
  write(file: string): void {
    writeFileSync(file, this.#taken.map((_, index) => `${this.#text(index, Number.POSITIVE_INFINITY)}\n`).join(''))
  }

  #text(index: number, longest = LONGEST): string {
    const taken = this.#taken[index]
    if (taken === undefined) return ''
    const time = new Date(taken.at).toISOString().slice(11, 23)
    return `step ${index + 1} at ${time}: ${JSON.stringify(taken.step).slice(0, longest)}`
  }
}

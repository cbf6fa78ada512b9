// SPDX-License-Identifier: Apache-2.0
/** Named conditions, and what follows from them: is this process ready, does it need a restart. Layer: lib/obs. */

export interface Condition {
  readonly name: string
  readonly ok: boolean
  /** why not; empty when it holds */
  readonly reason: string
  /** ms of the wall clock since when it is so */
  readonly since: number
}

export interface HealthReport {
  readonly ready: boolean
  readonly live: boolean
  /** sorted by name */
  readonly conditions: readonly Condition[]
}

/** readiness: traffic and rollouts wait for it. liveness: a restart would help. */
export type Gate = 'readiness' | 'liveness' | 'none'

interface Known extends Condition {
  readonly gate: Gate
  /** it was waited for, and has not held yet */
  readonly starting: boolean
}

export class Health {
  readonly #wall: () => number
  readonly #conditions = new Map<string, Known>()

  constructor(wall: () => number) {
    this.#wall = wall
  }

  /** Names a condition that has to hold. Until it is set it does not ("starting"); for liveness it does. */
  expect(name: string, gate: Gate): void {
    const ok = gate === 'liveness'
    this.#conditions.set(name, { name, gate, ok, starting: !ok, reason: ok ? '' : 'starting', since: this.#wall() })
  }

  pass(name: string): void {
    this.#set(name, true, '')
  }

  fail(name: string, reason: string): void {
    this.#set(name, false, reason)
  }

  /** Whether these conditions hold, or have failed for less than `graceMs`. There is no grace before they first
   * held, nor for liveness. */
  steady(names: ReadonlySet<string>, graceMs: number): boolean {
    const since = this.#wall() - graceMs
    return [...this.#conditions.values()].every(({ ok, gate, starting, ...one }) => {
      if (ok || gate === 'liveness') return ok
      return !names.has(one.name) || (!starting && one.since > since)
    })
  }

  /** What readiness waits for, and does not hold; sorted by name. */
  unready(): readonly Condition[] {
    const failing = [...this.#conditions.values()].filter(({ ok, gate }) => !ok && gate !== 'none')
    return failing.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  report(): HealthReport {
    const all = [...this.#conditions.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    const failing = all.filter((condition) => !condition.ok)
    return {
      ready: failing.every((condition) => condition.gate === 'none'),
      live: failing.every((condition) => condition.gate !== 'liveness'),
      conditions: all.map(({ name, ok, reason, since }) => ({ name, ok, reason, since })),
    }
  }

  #set(name: string, ok: boolean, reason: string): void {
    const before = this.#conditions.get(name)
    if (before?.ok === ok && before.reason === reason) return
    const since = before?.ok === ok ? before.since : this.#wall()
    const starting = !ok && before?.starting === true
    this.#conditions.set(name, { name, gate: before?.gate ?? 'readiness', starting, ok, reason, since })
  }
}

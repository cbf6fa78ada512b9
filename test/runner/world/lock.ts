// SPDX-License-Identifier: Apache-2.0
/** The lock of the one run that a machine has at a time: who has it, and what another run does then. It is a file that
 * holds the name of that run, and is never the reason for which a run fails. Layer: test. */
import { readFileSync, rmSync } from 'node:fs'
import { errorCode } from '#lib/base/errors.ts'

export interface Holder {
  readonly name: string
  readonly pid: number
  /** the process that the lock names, and not a later one with its number */
  readonly lives: boolean
}

/** "process 123, which began at 4567": in ticks since the machine came up */
export function nameOf(pid: number): string {
  return `process ${pid}, which began at ${beginOf(pid) ?? 0}`
}

/** Of a lock that another run has just removed or taken, one without a name. */
export function holderOf(lock: string): Holder {
  const name = textOf(lock)
  const pid = Number(/^process (\d+)/.exec(name)?.[1] ?? 0)
  return { name, pid, lives: pid > 0 && name === nameOf(pid) }
}

/** undefined: there is none. */
export function beginOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // the name before may have spaces and brackets
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
  } catch {
    return undefined
  }
}

export interface Patience {
  /** with a run, since it was first seen: another that has waited as long must not be ended for it */
  readonly waitMs: number
  /** with a lock whose run is gone: one that has just taken it has yet to write its name */
  readonly goneMs: number
}

export type Step = 'wait' | 'end' | 'remove'

/** What is done about one holder after the other. */
export class Waiting {
  readonly #patience: Patience
  #told: string | undefined
  #since = 0

  constructor(patience: Patience) {
    this.#patience = patience
  }

  /** `isNew`: it was another one before. */
  next({ name, lives }: Pick<Holder, 'name' | 'lives'>, now: number): { readonly step: Step; readonly isNew: boolean } {
    const isNew = name !== this.#told
    if (isNew) this.#since = now
    this.#told = name
    const { waitMs, goneMs } = this.#patience
    if (now - this.#since < (lives ? waitMs : goneMs)) return { step: 'wait', isNew }
    return { step: lives ? 'end' : 'remove', isNew }
  }
}

/** Its lock ends with it. */
export function endRun({ pid }: Pick<Holder, 'pid'>): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (thrown) {
    if (errorCode(thrown) !== 'ESRCH') throw thrown
  }
}

/** Whatever still has it does so without being a run. */
export function removeLock(lock: string): void {
  rmSync(lock, { force: true })
}

function textOf(lock: string): string {
  try {
    return readFileSync(lock, 'utf8')
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return ''
    throw thrown
  }
}

// SPDX-License-Identifier: Apache-2.0
/** How long test files and commands take, so that the longest start first: `test/durations.json`. Layer: test. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { FileOutcome } from '../failures.ts'

/** Seconds by the name of a test file, or of the stage of a command. */
export type Durations = Readonly<Record<string, number>>

/** Checked in, and what a run has measured, in the same form. */
export const DURATIONS = 'test/durations.json'
export const MEASURED = 'build/durations.json'
/** Of what is not known: neither among the first nor among the last. */
export const UNKNOWN_S = 30

/** Throws where an entry is no number of seconds. */
export function readDurations(text: string): Durations {
  const read: unknown = JSON.parse(text)
  if (typeof read !== 'object' || read === null) throw new Error(`${DURATIONS}: no object`)
  return Object.fromEntries(
    Object.entries(read).map(([name, seconds]: [string, unknown]) => {
      if (typeof seconds !== 'number' || !(seconds > 0)) throw new Error(`${DURATIONS}: ${name}: not a number of seconds`)
      return [name, seconds]
    }),
  )
}

export function durationOf(durations: Durations, name: string): number {
  return durations[name] ?? UNKNOWN_S
}

/** A process of vitest has run these files: each has its own time, and the same part of what is no file's, such as the
 * start and what comes before the first test. */
export function sharesOf(files: readonly FileOutcome[], seconds: number): Durations {
  const rest = seconds - files.reduce((sum, file) => sum + file.seconds, 0)
  return Object.fromEntries(files.map((file) => [file.name, Math.max(1, Math.round(file.seconds + rest / files.length))]))
}

/** Writes those that are checked in with what this run has measured in their place, and says how to take them over.
 * Nothing when nothing was measured. */
export function keepMeasured(measured: Durations): readonly string[] {
  if (Object.keys(measured).length === 0) return []
  const all = { ...readDurations(readFileSync(DURATIONS, 'utf8')), ...measured }
  const names = Object.keys(all).filter((name) => !name.endsWith('.test.ts') || existsSync(name))
  mkdirSync('build', { recursive: true })
  writeFileSync(MEASURED, `${JSON.stringify(Object.fromEntries(names.sort().map((name) => [name, all[name]])), null, 2)}\n`)
  return [`how long each took is in ${MEASURED}; the next run goes by it after: cp ${MEASURED} ${DURATIONS}`]
}

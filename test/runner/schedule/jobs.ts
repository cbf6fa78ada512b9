// SPDX-License-Identifier: Apache-2.0
/** The jobs of a run of tests: each is one process, of a command, a long test file, or several short ones.
 * Layer: test (pure). */
import type { Part, Stage } from '../stages.ts'
import { durationOf, type Durations } from './durations.ts'
import { MOSTLY_WAITING, type Weighed } from './scheduler.ts'

export interface Job extends Weighed {
  readonly stage: Stage
  /** "lint", "kernel test/kernel/x.test.ts", "kernel test/kernel/x.test.ts and 4 more" */
  readonly title: string
  /** under which its seconds are kept; undefined: under those of its files */
  readonly name?: string
  readonly part: Part
}

/** A process takes two seconds before its first test: files that take less than SHORT_S share one. */
const SHORT_S = 15
const SHARED_S = 40

export function jobsOf(stages: readonly Stage[], durations: Durations): readonly Job[] {
  return stages.flatMap((stage): readonly Job[] => {
    const { name, weight, obstacle, parts = [], files } = stage
    const whole = { stage, weight, title: name, seconds: durationOf(durations, name), name }
    if (obstacle !== undefined) return [{ ...whole, part: () => Promise.resolve({ passed: 0, failed: 0, skipped: 1, failures: [] }) }]
    const commands = parts.map((part, at) => ({ ...whole, title: parts.length === 1 ? name : `${name} ${at + 1}/${parts.length}`, part }))
    const batches = batchesOf(files?.names ?? [], durations).flatMap((batch) =>
      files === undefined
        ? []
        : [
            {
              stage,
              weight: batch.every((file) => files.waiting?.includes(file) === true) ? MOSTLY_WAITING : weight,
              title: titleOf(name, batch),
              seconds: secondsOf(batch, durations),
              part: files.run(batch),
            },
          ],
    )
    return [...commands, ...batches]
  })
}

/** Every file once: a long one by itself, short ones together, in the order of their paths. */
export function batchesOf(files: readonly string[], durations: Durations): readonly (readonly string[])[] {
  const isLong = (file: string): boolean => durationOf(durations, file) >= SHORT_S
  const batches: string[][] = files.filter(isLong).map((file) => [file])
  let short: string[] = []
  for (const file of files.filter((name) => !isLong(name)).sort()) {
    if (short.length === 0 || secondsOf([...short, file], durations) > SHARED_S) batches.push((short = []))
    short.push(file)
  }
  return batches
}

function secondsOf(files: readonly string[], durations: Durations): number {
  return files.reduce((sum, file) => sum + durationOf(durations, file), 0)
}

function titleOf(stage: string, [first = '', ...others]: readonly string[]): string {
  return `${stage} ${first}${others.length === 0 ? '' : ` and ${others.length} more`}`
}

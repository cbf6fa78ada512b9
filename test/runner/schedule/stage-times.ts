// SPDX-License-Identifier: Apache-2.0
/** What the stages of a run took, for the end of its log. Layer: test (pure). */

export interface JobTime {
  /** its name */
  readonly stage: string
  readonly seconds: number
  /** seconds of a processor */
  readonly worked: number
}

/** A line for each stage, the longest first. Jobs run beside each other, so the sum is more than the run took. */
export function stageTimes(jobs: readonly JobTime[]): readonly string[] {
  const line = (title: string, of: readonly JobTime[]): string =>
    `  ${title}: ${of.length} job${of.length === 1 ? '' : 's'}, ${secondsOf(of).toFixed(0)} s, ${workedOf(of).toFixed(0)} s of processor time`
  const stages = [...Map.groupBy(jobs, ({ stage }) => stage)].toSorted(([, a], [, b]) => secondsOf(b) - secondsOf(a))
  return ['the stages, and the seconds of their jobs:', ...stages.map(([name, of]) => line(name, of)), line('together', jobs)]
}

function secondsOf(jobs: readonly JobTime[]): number {
  return jobs.reduce((sum, { seconds }) => sum + seconds, 0)
}

function workedOf(jobs: readonly JobTime[]): number {
  return jobs.reduce((sum, { worked }) => sum + worked, 0)
}

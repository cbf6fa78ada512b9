// SPDX-License-Identifier: Apache-2.0
/** What the stages of a run took, for the end of its log. Layer: test (pure). */

export interface JobTime {
  /** its name */
  readonly stage: string
  readonly seconds: number
}

/** A line for each stage, the longest first. Jobs run beside each other, so the sum is more than the run took. */
export function stageTimes(jobs: readonly JobTime[]): readonly string[] {
  const seconds = (stage?: string): number =>
    jobs.filter((job) => stage === undefined || job.stage === stage).reduce((sum, job) => sum + job.seconds, 0)
  const line = (title: string, count: number, sum: number): string =>
    `  ${title}: ${count} job${count === 1 ? '' : 's'}, ${sum.toFixed(0)} s`
  const stages = [...new Set(jobs.map(({ stage }) => stage))].toSorted((a, b) => seconds(b) - seconds(a))
  return [
    'the stages, and the seconds of their jobs:',
    ...stages.map((stage) => line(stage, jobs.filter((job) => job.stage === stage).length, seconds(stage))),
    line('together', jobs.length, seconds()),
  ]
}

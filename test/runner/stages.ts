// SPDX-License-Identifier: Apache-2.0
/** What a run of tests is made of, and how it goes: jobs beside each other as far as the machine bears it, then those
 * that must be alone, then second chances. Layer: test. */
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { secondChance, suspectsOf, type ChanceOptions, type Suspect } from './again.ts'
import { failed, failureList, slowestList, type Count, type FileOutcome, type Outcome } from './failures.ts'
import { sharesOf, type Durations } from './schedule/durations.ts'
import { jobsOf, type Job } from './schedule/jobs.ts'
import { processorTime } from './schedule/processor-time.ts'
import { nextOf } from './schedule/scheduler.ts'
import { stageTimes, type JobTime } from './schedule/stage-times.ts'
import type { PartName } from './outside/parts.ts'
import { LIST, readUnsteady } from './unsteady.ts'

/** Where output goes: at once, or as a whole when the part has ended. */
export type Print = (chunk: Buffer | string, to?: NodeJS.WritableStream) => void

/** `limit`: aborted when its time is over. */
export type Part = (print: Print, limit?: AbortSignal) => Promise<Outcome>

export interface StageFiles {
  readonly names: readonly string[]
  /** those of them that wait most of their time */
  readonly waiting?: readonly string[]
  readonly run: (files: readonly string[]) => Part
}

export interface Stage {
  readonly name: string
  /** why it cannot run here; then its absence counts as one skip */
  readonly obstacle?: string | undefined
  /** Its jobs may run beside others that have one, as `schedule/scheduler.ts` says: nothing in them is measured, and
   * they share nothing. Without it each is alone. */
  readonly weight?: number
  /** outside of the gate: the part of `make test-all` that runs it */
  readonly part?: PartName
  /** How one of its test files, or its command, runs once more by itself; without it nothing of the stage does. */
  readonly again?: (file: string | undefined) => Part | undefined
  /** each a job */
  readonly parts?: readonly Part[]
  /** test files, of which a job runs one or several */
  readonly files?: StageFiles
}

const live: Print = (chunk, to = process.stdout) => {
  to.write(chunk)
}

export interface RunOptions {
  /** what jobs took before */
  readonly durations?: Durations
  /** receives the seconds that jobs took; returns lines for the log */
  readonly keep?: (measured: Durations) => readonly string[]
  /** receives the result, "3 passed, 0 failed, 0 skipped in 12 s"; returns lines for the log */
  readonly record?: (result: string) => readonly string[]
}

/** The exit code. Its last line is `N passed, M failed, K skipped`, and before it what failed and what was unsteady: of
 * a long log often no more than the end is seen. */
export async function runStages(stages: readonly Stage[], { durations = {}, keep, record }: RunOptions = {}): Promise<number> {
  const total = { passed: 0, failed: 0, skipped: 0 }
  const suspects: Suspect[] = []
  const files: FileOutcome[] = []
  const times: JobTime[] = []
  const measured: Record<string, number> = {}
  const add = ({ passed, failed, skipped }: Count): void => {
    total.passed += passed
    total.failed += failed
    total.skipped += skipped
  }
  const taken = stopwatch()
  const work = processorTime()
  await inTurn(jobsOf(stages, durations), async (job) => {
    const { outcome, seconds, worked } = await runJob(job, work)
    add(outcome)
    suspects.push(...suspectsOf(job.stage, outcome))
    files.push(...(outcome.files ?? []))
    times.push({ stage: job.stage.name, seconds, worked })
    if (job.weight !== undefined && outcome.failed === 0 && outcome.skipped === 0)
      Object.assign(measured, job.name === undefined ? sharesOf(outcome.files ?? [], seconds) : { [job.name]: Math.ceil(seconds) })
  })
  const { change, failures, unsteady, rows } = await secondChance(suspects, chanceOptions())
  add(change)
  const { seconds, text } = taken()
  console.log(['', ...slowestList(files), ...stageTimes(times), `all of it in ${text}`, ...(keep?.(measured) ?? [])].join('\n'))
  const skippedInCi = process.env['CI'] === 'true' && total.skipped > 0
  if (skippedInCi) console.log('\na skipped test is a failure in CI')
  const count = `${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`
  const recorded = record?.(`${count} in ${seconds.toFixed(0)} s`) ?? []
  const told = rows.length === 0 ? [] : [...unsteady.map((line) => `unsteady: ${line}`), `${LIST} is to have:`, ...rows]
  console.log(['', ...recorded, ...told, ...failureList(failures), count].join('\n'))
  return total.failed === 0 && !skippedInCi ? 0 : 1
}

/** Each once, when its turn comes; until the last has ended. */
async function inTurn(jobs: readonly Job[], run: (job: Job) => Promise<void>): Promise<void> {
  const waiting = [...jobs]
  const running = new Map<Job, Promise<void>>()
  const startAll = (): void => {
    for (let job = nextOf(waiting, [...running.keys()]); job !== undefined; job = nextOf(waiting, [...running.keys()])) {
      const started = job
      waiting.splice(waiting.indexOf(started), 1)
      running.set(
        started,
        run(started).finally(() => running.delete(started)),
      )
    }
  }
  for (startAll(); running.size > 0; startAll()) await Promise.race(running.values())
}

function chanceOptions(): ChanceOptions {
  const known = new Set(readUnsteady(readFileSync(LIST, 'utf8')).map(({ name }) => name))
  return { print: live, now: () => performance.now(), known, today: new Date().toISOString().slice(0, 10) }
}

interface Ran {
  readonly outcome: Outcome
  readonly seconds: number
  /** seconds of a processor */
  readonly worked: number
}

/** `work`: what ended since it was asked last. */
async function runJob({ stage, title, weight, part }: Job, work: () => number): Promise<Ran> {
  if (stage.obstacle !== undefined) console.log(`\n== ${title}: skipped, ${stage.obstacle}`)
  const held: Parameters<Print>[] = []
  const print: Print = weight === undefined ? live : (...said) => held.push(said)
  if (stage.obstacle === undefined) print(`\n== ${title}\n`)
  const taken = stopwatch()
  // whatever it is: all others are still to be told
  const outcome = await part(print).catch((thrown: unknown) =>
    failed(thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)),
  )
  const { seconds, text } = taken()
  const worked = work()
  const isFine = outcome.files !== undefined && outcome.failed === 0 && outcome.skipped === 0
  // of test files that passed the last line says all
  for (const said of isFine ? [] : held) live(...said)
  const { passed, failed: broken, skipped } = outcome
  if (stage.obstacle === undefined)
    console.log(`== ${title}: ${passed} passed, ${broken} failed, ${skipped} skipped in ${text}, ${worked.toFixed(0)} s of processor time`)
  return { outcome, seconds, worked }
}

/** From now until it is called: the seconds, and how much of them the processors of the machine had nothing to do,
 * which is what waiting costs. */
function stopwatch(): () => { readonly seconds: number; readonly text: string } {
  const began = performance.now()
  const before = processorTimes()
  return () => {
    const seconds = (performance.now() - began) / 1000
    const after = processorTimes()
    const idle = (100 * (after.idle - before.idle)) / Math.max(1, after.all - before.all)
    return { seconds, text: `${seconds.toFixed(0)} s, processors ${idle.toFixed(0)} % idle` }
  }
}

/** Of all processors since the machine started, in ms. */
function processorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times)
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap((cpu) => Object.values(cpu))) }
}

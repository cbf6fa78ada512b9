// SPDX-License-Identifier: Apache-2.0
/** What a run of tests is made of, and in which order: most parts one after another, those that bear company in two
 * lanes. Layer: test. */
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { secondChance, suspectsOf, type ChanceOptions, type Suspect } from './again.ts'
import { failureList, slowestList, type Count, type FileOutcome, type Outcome } from './failures.ts'
import { LIST, readUnsteady } from './unsteady.ts'

/** Where output goes: at once, or as a whole when the part has ended. */
export type Print = (chunk: Buffer | string, to?: NodeJS.WritableStream) => void

/** `limit`: aborted when its time is over. */
export type Part = (print: Print, limit?: AbortSignal) => Promise<Outcome>

export interface Stage {
  readonly name: string
  /** why it cannot run here; then its absence counts as one skip */
  readonly obstacle?: string | undefined
  /** Its parts may run beside each other and beside those of its neighbours that say so too: nothing in them is
   * measured, and they share nothing. */
  readonly inLanes?: boolean
  /** outside of the gate: `make test-all` alone runs it */
  readonly isOutside?: boolean
  /** How one of its test files, or its command, runs once more by itself; without it nothing of the stage does. */
  readonly again?: (file: string | undefined) => Part | undefined
  readonly parts: readonly Part[]
}

interface Job {
  readonly stage: Stage
  /** "kernel", or of several parts "kernel 1/4" */
  readonly title: string
  readonly part: Part
}

/** As many as a machine of two cores can do before tests wait longer for it than for what they are about. */
const LANES = 2
const live: Print = (chunk, to = process.stdout) => {
  to.write(chunk)
}

/** The exit code. Its last line is `N passed, M failed, K skipped`, and before it what failed and what was unsteady: of
 * a long log often no more than the end is seen. */
export async function runStages(stages: readonly Stage[]): Promise<number> {
  const total = { passed: 0, failed: 0, skipped: 0 }
  const suspects: Suspect[] = []
  const files: FileOutcome[] = []
  const add = ({ passed, failed, skipped }: Count): void => {
    total.passed += passed
    total.failed += failed
    total.skipped += skipped
  }
  const taken = stopwatch()
  const runLane = async (queue: Job[], isAlone: boolean): Promise<void> => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      const outcome = await runJob(job, isAlone)
      add(outcome)
      suspects.push(...suspectsOf(job.stage, outcome))
      files.push(...(outcome.files ?? []))
    }
  }
  for (const queue of queuesOf(stages)) {
    const lanes = queue[0]?.stage.inLanes === true ? Math.min(LANES, queue.length) : 1
    await Promise.all(Array.from({ length: lanes }, () => runLane(queue, lanes === 1)))
  }
  const { change, failures, unsteady, rows } = await secondChance(suspects, chanceOptions())
  add(change)
  console.log(['', ...slowestList(files), `all of it in ${taken()}`].join('\n'))
  const skippedInCi = process.env['CI'] === 'true' && total.skipped > 0
  if (skippedInCi) console.log('\na skipped test is a failure in CI')
  const count = `${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`
  const told = rows.length === 0 ? [] : [...unsteady.map((line) => `unsteady: ${line}`), `${LIST} is to have:`, ...rows]
  console.log(['', ...told, ...failureList(failures), count].join('\n'))
  return total.failed === 0 && !skippedInCi ? 0 : 1
}

function chanceOptions(): ChanceOptions {
  const known = new Set(readUnsteady(readFileSync(LIST, 'utf8')).map(({ name }) => name))
  return { print: live, now: () => performance.now(), known, today: new Date().toISOString().slice(0, 10) }
}

/** Neighbours that bear company have one queue. */
export function queuesOf(stages: readonly Stage[]): Job[][] {
  const queues: Job[][] = []
  for (const [at, stage] of stages.entries()) {
    if (at === 0 || stage.inLanes !== true || stages[at - 1]?.inLanes !== true) queues.push([])
    const count = stage.obstacle === undefined ? stage.parts.length : 1
    for (const [index, part] of stage.parts.slice(0, count).entries())
      queues.at(-1)?.push({ stage, title: count === 1 ? stage.name : `${stage.name} ${index + 1}/${count}`, part })
  }
  return queues
}

async function runJob({ stage, title, part }: Job, isAlone: boolean): Promise<Outcome> {
  if (stage.obstacle !== undefined) {
    console.log(`\n== ${title}: skipped, ${stage.obstacle}`)
    return { passed: 0, failed: 0, skipped: 1, failures: [] }
  }
  const held: Parameters<Print>[] = []
  const print: Print = isAlone ? live : (...said) => held.push(said)
  print(`\n== ${title}\n`)
  const taken = stopwatch()
  const count = await part(print)
  for (const said of held) live(...said)
  console.log(`== ${title}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped in ${taken()}`)
  return count
}

/** From now until it is called: the seconds, and how much of them the processors of the machine had nothing to do,
 * which is what waiting costs. */
function stopwatch(): () => string {
  const began = performance.now()
  const before = processorTimes()
  return () => {
    const after = processorTimes()
    const idle = (100 * (after.idle - before.idle)) / Math.max(1, after.all - before.all)
    return `${((performance.now() - began) / 1000).toFixed(0)} s, processors ${idle.toFixed(0)} % idle`
  }
}

/** Of all processors since the machine started, in ms. */
function processorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times)
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap((cpu) => Object.values(cpu))) }
}

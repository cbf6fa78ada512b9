// SPDX-License-Identifier: Apache-2.0
/** The second chance: what failed runs once more when all else has ended, alone, in a new process and with the same
 * seed. What passes then was unsteady, and is named; a fault of the product fails twice. Layer: test. */
import { shorten, type Count, type Failure, type Outcome, type Told } from './failures.ts'
import type { Part, Print, Stage } from './stages.ts'
import { LIST, unsteadyRow } from './unsteady.ts'

/** What failed in one stage: a test file, or a command. */
export interface Suspect {
  readonly stage: Stage
  /** undefined for a command */
  readonly file: string | undefined
  /** what the first run counted of it */
  readonly count: Count
  readonly failures: readonly Failure[]
}

/** What a run comes to after second chances. */
export interface Verdict {
  /** to be added to what the first run counted */
  readonly change: Count
  readonly failures: readonly Told[]
  /** a line for each that passed the second time: what it was, and how it failed first */
  readonly unsteady: readonly string[]
  /** of each of them the row for the list */
  readonly rows: readonly string[]
}

export interface ChanceOptions {
  readonly print: Print
  /** milliseconds of a clock that only goes forward */
  readonly now: () => number
  /** names on the list: they had their chance */
  readonly known: ReadonlySet<string>
  /** "2026-11-29" */
  readonly today: string
  /** for all of it; what is at it then is ended */
  readonly mostMs?: number
}

/** More files than that did not fail by chance. */
const MOST_FILES = 3
const MOST_MS = 10 * 60_000
/** Tests without time or neighbours in them: what fails here fails again, and what passes once must not hide it. The
 * last two run sanitized programs, whose reports need not be in what the test says. */
const NEVER = [/^test\/native\//, /^test\/kernel\/(packets|frames|policy\/)/, /^test\/(agent\/cni\/install\/shim|bench\/tools\/traffic)\./]
/** What a sanitizer says is true, however seldom it says so. */
const REPORT = /Sanitizer|runtime error:/

/** Runs each suspect once more where it may, and says what is left of the failures. */
export async function secondChance(suspects: readonly Suspect[], options: ChanceOptions): Promise<Verdict> {
  const { print, now, known, today, mostMs = MOST_MS } = options
  for (const name of new Set(suspects.map(nameOf)))
    if (known.has(name)) print(`\n${name} failed, and is in ${LIST}: it has no second chance\n`)
  const candidates = suspects.map((suspect) => ({ suspect, part: known.has(nameOf(suspect)) ? undefined : partOf(suspect) }))
  const count = candidates.filter(({ part }) => part !== undefined).length
  const isTooMany = count > MOST_FILES
  if (isTooMany) print(`\n${count} files failed, more than the ${MOST_FILES} that get a second chance\n`)
  const end = now() + mostMs
  let change: Count = { passed: 0, failed: 0, skipped: 0 }
  const failures: Told[] = []
  const unsteady: string[] = []
  const rows: string[] = []
  for (const { suspect, part } of candidates) {
    const leftMs = end - now()
    const again = part === undefined || isTooMany || leftMs <= 0 ? undefined : await runAgain(suspect, part, { print, leftMs })
    if (again === undefined || !isClean(again) || now() >= end) {
      failures.push(...suspect.failures.map((failure) => ({ stage: suspect.stage.name, failure })))
      continue
    }
    change = sum(change, again, suspect.count)
    const errors = suspect.failures.map(({ text }) => text.replaceAll(/\n\s*/g, ': '))
    unsteady.push(...errors.map((error) => shorten(`${suspect.stage.name}: ${error}`)))
    const name = nameOf(suspect)
    rows.push(unsteadyRow({ name, error: shorten(errors[0]?.replace(`${name} > `, '') ?? ''), date: today }))
  }
  return { change, failures, unsteady, rows }
}

/** Of one outcome: a suspect for each file with a failure, and one for all failures that have no file. */
export function suspectsOf(stage: Stage, outcome: Outcome): Suspect[] {
  const { failures, files = [] } = outcome
  const names = [...new Set(failures.map(({ file }) => file))]
  const counts = names.flatMap((name) => files.filter((file) => file.name === name))
  return names.map((file) => ({
    stage,
    file,
    failures: failures.filter((failure) => failure.file === file),
    count: counts.find(({ name }) => name === file) ?? difference(outcome, counts),
  }))
}

function partOf({ stage, file, failures }: Suspect): Part | undefined {
  if (file !== undefined && NEVER.some((path) => path.test(file))) return undefined
  if (failures.some(({ text, isOnce }) => isOnce === true || REPORT.test(text))) return undefined
  return stage.again?.(file)
}

/** Its file, or the stage of its command. */
function nameOf({ stage, file }: Suspect): string {
  return file ?? stage.name
}

async function runAgain(
  { stage, file }: Suspect,
  part: Part,
  { print, leftMs }: { readonly print: Print; readonly leftMs: number },
): Promise<Outcome> {
  print(`\n== once more, alone: ${stage.name}${file === undefined ? '' : ` ${file}`}\n`)
  return await part(print, AbortSignal.timeout(Math.ceil(leftMs)))
}

/** A run of nothing proves nothing. */
function isClean({ passed, failed, skipped }: Count): boolean {
  return passed > 0 && failed === 0 && skipped === 0
}

function sum(total: Count, plus: Count, minus: Count): Count {
  return {
    passed: total.passed + plus.passed - minus.passed,
    failed: total.failed + plus.failed - minus.failed,
    skipped: total.skipped + plus.skipped - minus.skipped,
  }
}

function difference(whole: Count, parts: readonly Count[]): Count {
  return parts.reduce((rest, part) => sum(rest, { passed: 0, failed: 0, skipped: 0 }, part), whole)
}

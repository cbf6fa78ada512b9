// SPDX-License-Identifier: Apache-2.0
/** Which tests failed, out of vitest's JSON reports or the output of commands, in lines that fit at the end of a
 * log. Layer: test. */
import { relative } from 'node:path'

export interface Count {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** A test file, its tests, and how long they took. */
export interface FileOutcome extends Count {
  readonly name: string
  readonly seconds: number
}

export interface Failure {
  /** a name, and at most MOST_OF_MESSAGE lines of what it says */
  readonly text: string
  /** the test file; undefined when it is of a command, or of no file */
  readonly file?: string
  /** [once] is in its title: it has seen what must never be, such as a packet that got past a rule */
  readonly isOnce?: true
}

export interface Outcome extends Count {
  readonly failures: readonly Failure[]
  /** of commands none */
  readonly files?: readonly FileOutcome[]
}

/** A failure, and the name of its stage. */
export interface Told {
  readonly stage: string
  readonly failure: Failure
}

/** One failed test that has no name. */
export function failed(why: string): Outcome {
  return { passed: 0, failed: 1, skipped: 0, failures: [{ text: why }] }
}

/** With one more failed test, for an error outside of tests: `file`'s where that is known. */
export function withError(outcome: Outcome, errors: readonly Failure[], file?: string): Outcome {
  const { failures, files = [] } = outcome
  return {
    ...outcome,
    failed: outcome.failed + 1,
    failures: [...failures, ...errors.map((error) => (file === undefined ? error : { ...error, file }))],
    files: files.map((one) => (one.name === file ? { ...one, failed: one.failed + 1 } : one)),
  }
}

/** Lines of a command that say what is wrong with it, the surest first; a count like "3 passed, 1 failed" is none. */
const TELLING = [/\bFAIL(ED)?\b/, /\bCommandError\b|\bnot found\b/, /\b(failed|error)\b/i]
const COUNT = /\d+ passed, \d+ failed/
const FINAL_COUNT = /(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/
const CODES = /\u001b\[[0-9;]*m/g
/** of a message, where what it says is over */
const TRACE = /^\s+at /
/** Of one command, and of all stages together: a log's end is short. */
const MOST_OF_COMMAND = 6
const MOST = 12
const MOST_OF_MESSAGE = 6
const LONGEST = 200
/** in the title of a test */
export const ONCE = '[once]'
const SLOWEST = 10

/** Of vitest's JSON report. Throws SyntaxError when it is none. */
export function ofReport(json: string, root: string): Outcome {
  const report: unknown = JSON.parse(json)
  const number = (name: string): number => {
    const value = field(report, name)
    return typeof value === 'number' ? value : 0
  }
  const files = list(report, 'testResults')
  const failures = files.flatMap((file) => failuresOfFile(file, root))
  return {
    passed: number('numPassedTests'),
    // a file that could not be loaded is none of the report's failed tests
    failed: Math.max(number('numFailedTests'), failures.length),
    skipped: number('numPendingTests') + number('numTodoTests'),
    failures,
    files: files.map((file) => ({ name: relative(root, text(file, 'name')), seconds: secondsOf(file), ...countOf(file) })),
  }
}

/** A test by its file and title, and what it said when it failed. */
export interface TestResult {
  readonly name: string
  readonly error: string | undefined
}

/** Each test of a report that ran, and each file that could not be loaded. */
export function testsOf(json: string, root: string): readonly TestResult[] {
  return list(JSON.parse(json), 'testResults').flatMap((file) => {
    const passed = list(file, 'assertionResults').filter((test) => field(test, 'status') === 'passed')
    const name = relative(root, text(file, 'name'))
    const failures = failuresOfFile(file, root).map(({ text }) => text.split('\n    '))
    return [
      ...passed.map((test) => ({ name: shorten(`${name} > ${pathOf(test)}`), error: undefined })),
      ...failures.map(([first = '', ...said]) => ({ name: first, error: said.join('\n    ') })),
    ]
  })
}

/** A command is one test, or counts for itself in a line that ends with `N passed, M failed`; of several the last
 * counts. */
export function ofCommand(output: string, code: number): Outcome {
  const lines = output
    .replaceAll(CODES, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const counted = lines.map((line) => FINAL_COUNT.exec(line)).findLast((match) => match !== null) ?? null
  const count =
    counted === null
      ? { passed: code === 0 ? 1 : 0, failed: 0, skipped: 0 }
      : { passed: Number(counted[1]), failed: Number(counted[2]), skipped: Number(counted[3] ?? 0) }
  if (code === 0 && count.failed === 0) return { ...count, failures: [] }
  const telling = TELLING.map((words) => lines.filter((line) => words.test(line) && !COUNT.test(line))).find((found) => found.length > 0)
  return {
    ...count,
    failed: Math.max(1, count.failed),
    failures: (telling ?? lines.slice(-3)).slice(0, MOST_OF_COMMAND).map((line) => ({ text: shorten(line) })),
  }
}

/** "stage: file > test" and what it says, as many as fit; nothing when all is well. */
export function failureList(failures: readonly Told[]): string[] {
  if (failures.length === 0) return []
  const shown = failures.slice(0, MOST).map(({ stage, failure }) => `  ${stage}: ${failure.text}`)
  const more = failures.length > MOST ? [`  and ${failures.length - MOST} more`] : []
  return ['failed:', ...shown, ...more]
}

/** The files that took longest, the longest first; nothing when none is known. */
export function slowestList(files: readonly FileOutcome[]): string[] {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)
  return slowest.length === 0 ? [] : ['the slowest files:', ...slowest.map(({ name, seconds }) => `  ${seconds.toFixed(1)} s ${name}`)]
}

/** A file that could not even be loaded has a message of its own, and no tests. */
function failuresOfFile(file: unknown, root: string): Failure[] {
  const name = relative(root, text(file, 'name'))
  const tests = list(file, 'assertionResults').filter((test) => field(test, 'status') === 'failed')
  if (tests.length === 0) return field(file, 'status') === 'failed' ? [{ text: entry(name, text(file, 'message')), file: name }] : []
  return tests.map((test) => {
    const path = pathOf(test)
    const [message] = list(test, 'failureMessages')
    const text = entry(`${name} > ${path}`, typeof message === 'string' ? message : '')
    return { text, file: name, ...(path.includes(ONCE) && { isOnce: true as const }) }
  })
}

function pathOf(test: unknown): string {
  return [...list(test, 'ancestorTitles'), field(test, 'title')].filter((title) => title !== '').join(' > ')
}

/** Of one file of a report. One that failed by itself, and not by a test of its own, counts as one failed test. */
function countOf(file: unknown): Count {
  const statuses = list(file, 'assertionResults').map((test) => field(test, 'status'))
  const [passed, failed] = ['passed', 'failed'].map((wanted) => statuses.filter((status) => status === wanted).length)
  const isBroken = failed === 0 && field(file, 'status') === 'failed'
  return { passed: passed ?? 0, failed: isBroken ? 1 : (failed ?? 0), skipped: statuses.length - (passed ?? 0) - (failed ?? 0) }
}

function secondsOf(file: unknown): number {
  const [start, end] = [field(file, 'startTime'), field(file, 'endTime')]
  return typeof start === 'number' && typeof end === 'number' ? (end - start) / 1000 : 0
}

function entry(where: string, message: string): string {
  const lines = message.replaceAll(CODES, '').split('\n')
  const trace = lines.findIndex((line) => TRACE.test(line))
  const said = lines.slice(0, trace === -1 ? lines.length : trace).filter((line) => line.trim() !== '')
  return [where, ...said.slice(0, MOST_OF_MESSAGE)].map(shorten).join('\n    ')
}

/** So that one failure does not fill the end of a log. */
export function shorten(line: string): string {
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST)} …`
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

function text(value: unknown, name: string): string {
  const found = field(value, name)
  return typeof found === 'string' ? found : ''
}

function list(value: unknown, name: string): readonly unknown[] {
  const found = field(value, name)
  return Array.isArray(found) ? found : []
}

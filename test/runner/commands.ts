// SPDX-License-Identifier: Apache-2.0
/** Commands and runs of vitest as parts of a run of tests. Layer: test. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ofCommand, ofReport, ONCE, withError, type Failure, type Outcome } from './failures.ts'
import { endTree } from './process-tree.ts'
import type { Print } from './stages.ts'

export interface VitestOptions {
  readonly project: string
  /** for reports */
  readonly folder: string
  /** in front of the command, {@link inOwnNamespaces} for one */
  readonly prefix?: readonly string[]
  /** parts of paths; all files when there are none */
  readonly only?: readonly string[]
  /** part of the titles of tests; others are left out */
  readonly title?: string | undefined
  /** aborted when its time is over: then it is ended */
  readonly limit?: AbortSignal | undefined
}

/** Said of what is ended. */
const LATE = 'ended: its time is over'
const NOTHING: Outcome = { passed: 0, failed: 0, skipped: 0, failures: [] }

interface VitestRun {
  readonly code: number
  readonly output: string
  /** JSON; undefined: it came to none */
  readonly report: string | undefined
}

export async function runVitest(print: Print, options: VitestOptions): Promise<VitestRun> {
  const { project, folder, prefix = [], only = [], title, limit } = options
  // so that no run reads another one's
  const report = join(mkdtempSync(join(folder, `${project}-`)), 'report.json')
  const line = [
    ...[...prefix, process.execPath, '--conditions=source', 'node_modules/vitest/vitest.mjs', 'run', '--project', project],
    ...['--reporter=dot', '--reporter=json', `--outputFile.json=${report}`],
    ...(title === undefined ? [] : ['--testNamePattern', title]),
    ...only,
  ]
  const ended = await spawned(print, line, limit)
  return { ...ended, report: existsSync(report) ? readFileSync(report, 'utf8') : undefined }
}

/** Where one file alone runs, what goes wrong outside of its tests is that file's. */
export async function vitest(print: Print, options: VitestOptions): Promise<Outcome> {
  const { code, output, report } = await runVitest(print, options)
  const files = (options.only ?? []).filter((path) => path.endsWith('.test.ts'))
  const outcome = report === undefined ? undefined : outcomeOf(report)
  // without a report the tag of a test that must never fail stands in the output alone
  const error = (text: string): Failure => ({ text, ...(output.includes(ONCE) && { isOnce: true as const }) })
  const inError = (before: Outcome, errors: readonly string[]): Outcome =>
    withError(before, errors.map(error), files.length === 1 ? files[0] : undefined)
  if (outcome === undefined) return inError(NOTHING, [[...files.slice(0, 1), ...said(output, 1)].join('\n    ')])
  const missing = files.filter((file) => outcome.files?.some(({ name }) => name === file) !== true)
  if (missing.length > 0) return inError(outcome, [...missing.map((file) => `${file} did not run`), ...said(output, code)])
  if (code === 0 || (outcome.failed > 0 && !/Unhandled (Error|Rejection)/.test(output))) return outcome
  return inError(outcome, said(output, code))
}

/** undefined: the process has ended before the report did. */
function outcomeOf(report: string): Outcome | undefined {
  try {
    return ofReport(report, process.cwd())
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined
    throw thrown
  }
}

/** What a process that has ended badly says of it. */
function said(output: string, code: number): readonly string[] {
  const told = ofCommand(output, code).failures.map(({ text }) => text)
  return told.length === 0 ? [`ended with code ${code}, without a word`] : told
}

/** `limit`: aborted when its time is over; then it is ended. */
export async function command(print: Print, line: readonly string[], limit?: AbortSignal): Promise<Outcome> {
  const { code, output } = await spawned(print, line, limit)
  return ofCommand(output, code)
}

/** Its output is shown as it comes, and kept: the two streams in the order of their arrival. Without colours, which
 * CI has ten bytes of for each dot. */
function spawned(
  print: Print,
  line: readonly string[],
  limit: AbortSignal | undefined,
): Promise<{ readonly code: number; readonly output: string }> {
  const [file = '', ...args] = line
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } })
    let output = ''
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ] as const)
      from.on('data', (chunk: Buffer) => {
        print(chunk, to)
        output += chunk.toString()
      })
    const end = (): void => {
      output += `\n${LATE}\n`
      print(`\n${LATE}\n`, process.stderr)
      if (child.pid !== undefined) endTree(child.pid)
      // what has left its parents may have it open
      for (const stream of [child.stdout, child.stderr]) stream.destroy()
    }
    if (limit?.aborted === true) end()
    else limit?.addEventListener('abort', end)
    child.on('error', (error) => {
      print(`${error.message}\n`, process.stderr)
      resolve({ code: 1, output: output + error.message })
    })
    child.on('close', (code, signal) => {
      limit?.removeEventListener('abort', end)
      if (signal !== null && limit?.aborted !== true) output += `\nended by ${signal}\n`
      resolve({ code: code ?? 1, output })
    })
  })
}

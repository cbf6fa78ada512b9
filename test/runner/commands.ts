// SPDX-License-Identifier: Apache-2.0
/** Commands and runs of vitest as parts of a run of tests. Layer: test. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { failed, ofCommand, ofReport, type Outcome } from './failures.ts'
import type { Print } from './stages.ts'

export interface VitestOptions {
  readonly project: string
  /** for reports */
  readonly folder: string
  /** in front of the command, {@link inOwnNamespaces} for one */
  readonly prefix?: readonly string[]
  /** "1/4" */
  readonly shard?: string
  /** parts of paths; all files when there are none */
  readonly only?: readonly string[]
  readonly except?: readonly string[]
}

export async function vitest(print: Print, options: VitestOptions): Promise<Outcome> {
  const { project, folder, prefix = [], shard, only = [], except = [] } = options
  // so that no run reads another one's
  const report = join(mkdtempSync(join(folder, `${project}-`)), 'report.json')
  const { code, output } = await spawned(print, [
    ...[...prefix, process.execPath, '--conditions=source', 'node_modules/vitest/vitest.mjs', 'run', '--project', project],
    ...['--reporter=dot', '--reporter=json', `--outputFile.json=${report}`],
    ...[...(shard === undefined ? [] : [`--shard=${shard}`]), ...except.map((file) => `--exclude=${file}`), ...only],
  ])
  if (!existsSync(report))
    return failed(
      ofCommand(output, 1)
        .failures.map(({ text }) => text)
        .join('\n    '),
    )
  const outcome = ofReport(readFileSync(report, 'utf8'), process.cwd())
  if (code === 0 || (outcome.failed > 0 && !/Unhandled (Error|Rejection)/.test(output))) return outcome
  // an error outside of tests
  return { ...outcome, failed: outcome.failed + 1, failures: [...outcome.failures, ...ofCommand(output, code).failures] }
}

export async function command(print: Print, line: readonly string[]): Promise<Outcome> {
  const { code, output } = await spawned(print, line)
  return ofCommand(output, code)
}

/** Its output is shown as it comes, and kept: the two streams in the order of their arrival. Without colours, which
 * CI has ten bytes of for each dot. */
function spawned(print: Print, line: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
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
    child.on('error', (error) => {
      print(`${error.message}\n`, process.stderr)
      resolve({ code: 1, output: output + error.message })
    })
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

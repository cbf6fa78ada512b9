// SPDX-License-Identifier: Apache-2.0
/** Runs a part of the benchmark as a process in namespaces of its own, and takes its figures. Layer: bench. */
import { mustRun } from '../../lab/command.ts'
import { partCommand } from './root.ts'

export interface PartRun {
  /** "packet/main" */
  readonly part: string
  readonly args: readonly string[]
  /** network and mount namespaces of its own; the part makes what it needs in them */
  readonly isolated: boolean
  readonly timeoutMs: number
}

/** What it writes, parsed: the part and its caller are built together, so that nobody checks. Throws CommandError when it fails. */
export async function runPart<T>(run: PartRun): Promise<T> {
  const isolation = run.isolated ? ['unshare', '--net', '--mount'] : []
  const output = await mustRun([...isolation, ...partCommand(run.part), ...run.args], { timeoutMs: run.timeoutMs })
  return parse<T>(output)
}

function parse<T>(text: string): T {
  const value: T = JSON.parse(text)
  return value
}

// SPDX-License-Identifier: Apache-2.0
/** Runs a part of the benchmark as a process in namespaces of its own, and takes its figures. Layer: bench. */
import { InternalError } from '#lib/base/errors.ts'
import { mustRun } from '../../lab/processes/command.ts'
import { isListOf } from './shape.ts'
import { partCommand } from './root.ts'

/** In front of a command: network, mount and process namespaces of its own, and an end with it for all that it has
 * started. */
export const ISOLATION = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']

export interface PartRun<T> {
  /** "packet/main" */
  readonly part: string
  readonly args: readonly string[]
  /** network, mount and process namespaces of its own: the part makes what it needs in them, and nothing outlives it */
  readonly isolated: boolean
  readonly timeoutMs: number
  /** fields that its figures have */
  readonly fields: readonly (keyof T & string)[]
}

/** Throws CommandError when it fails, InternalError when it writes something else. */
export async function runPart<T extends object>(run: PartRun<T>): Promise<T[]> {
  const isolation = run.isolated ? ISOLATION : []
  const output = await mustRun([...isolation, ...partCommand(run.part), ...run.args], { timeoutMs: run.timeoutMs })
  const figures: unknown = JSON.parse(output)
  if (!isListOf(figures, run.fields)) throw new InternalError(`${run.part} wrote no figures: ${output.slice(0, 200)}`)
  return figures
}

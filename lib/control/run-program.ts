// SPDX-License-Identifier: Apache-2.0
/** A program that acts for the cluster, from its start to its end: its log, its signals, and its exit code.
 * Layer: lib/control. */
import { createLog, type RootLog } from '../obs/log.ts'
import { endOnDefects, stopSignal, type Program } from '../obs/process-end.ts'

export interface RunningProgram {
  readonly log: RootLog
  /** SIGTERM or SIGINT has come */
  readonly signal: AbortSignal
}

/** Returns the exit code: 0 ended by a signal, 1 failed. `name`: what its events begin with. */
export async function runProgram(name: Program, run: (program: RunningProgram) => Promise<void>): Promise<number> {
  await using log = createLog({ level: 'info' })
  endOnDefects(log, name)
  const signal = stopSignal(log, name)
  try {
    await run({ log, signal })
  } catch (thrown) {
    log.fatal({ error: thrown }, `${name}.failed`)
    return 1
  }
  return 0
}

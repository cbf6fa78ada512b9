// SPDX-License-Identifier: Apache-2.0
/** How a process that runs until it is stopped ends. Layer: lib/obs. */
import type { RootLog } from './log.ts'

/** Of the program; begins the names of its events. */
export type Program = 'agent' | 'operator' | 'controllers' | 'flows'

/** What is not caught ends the process: nothing after a defect can be relied on. */
export function endOnDefects(log: RootLog, program: Program): void {
  const fatal = (thrown: unknown): void => {
    log.fatal({ error: thrown }, `${program}.failed`)
    process.exit(1)
  }
  process.on('uncaughtException', fatal)
  process.on('unhandledRejection', fatal)
}

/** Aborts when the process is told to stop. */
export function stopSignal(log: RootLog, program: Program): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      log.info({ signal }, `${program}.stopping`)
      stop.abort()
    })
  return stop.signal
}

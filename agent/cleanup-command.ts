// SPDX-License-Identifier: Apache-2.0
/** netplane-agent --cleanup. Layer: agent. */
import { join } from 'node:path'
import { cleanup } from './dataplane/cleanup.ts'
import { Pins } from './dataplane/pins.ts'
import { lockHolder } from './lock.ts'

export interface CleanupCommand {
  readonly pinDir: string
  readonly stateDir: string
  readonly cgroup: string | undefined
}

/** Prints what was removed; returns the exit code. */
export async function cleanupCommand(command: CleanupCommand): Promise<number> {
  const holder = await lockHolder()
  if (holder !== undefined) {
    process.stderr.write(`netplane-agent: an agent is running and would put everything back: ${holder}. Stop it first.\n`)
    return 1
  }
  const report = cleanup({ pins: new Pins(command.pinDir), sysctlState: join(command.stateDir, 'sysctls.json'), cgroup: command.cgroup })
  for (const line of report.removed) process.stdout.write(`removed ${line}\n`)
  for (const line of report.restored) process.stdout.write(`restored ${line}\n`)
  for (const line of report.failed) process.stderr.write(`failed ${line}\n`)
  if (report.removed.length + report.restored.length + report.failed.length === 0) process.stdout.write('there was nothing to remove\n')
  return report.failed.length === 0 ? 0 : 1
}

#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplane-agent: which command, and how it ends. Layer: agent.
 *
 * What a command needs is loaded when it is run: --version must not depend on the addon, and a warm start is quick. */
import { runMain } from '#lib/base/os/program.ts'
import { parseOptions, type AgentOptions, type Command } from './run/options.ts'

async function main(command: Command): Promise<number> {
  switch (command.kind) {
    case 'print-desired': {
      const { printDesired } = await import('#agent/commands/print-desired.ts')
      return await printDesired(command.options)
    }
    case 'cleanup': {
      if (await mayNot()) return 1
      const { cleanupCommand } = await import('#agent/commands/cleanup.ts')
      return await cleanupCommand(command)
    }
    case 'preflight': {
      const { preflightCommand } = await import('#agent/commands/preflight.ts')
      return await preflightCommand(command.options)
    }
    case 'run':
      return await run(command.options)
  }
}

/** Says so when this process may not do what an agent does. */
async function mayNot(): Promise<boolean> {
  const { ownMissingPrivileges } = await import('#agent/node/privileges.ts')
  const missing = ownMissingPrivileges()
  if (missing !== undefined) process.stderr.write(`netplane-agent: ${missing}\n`)
  return missing !== undefined
}

async function run(options: AgentOptions): Promise<number> {
  if (await mayNot()) return 1
  const { createLog } = await import('#lib/obs/log.ts')
  const { endOnDefects, stopSignal } = await import('#lib/obs/process-end.ts')
  await using log = createLog({ level: 'info', fields: { node: options.node } })
  // the data plane goes on without us
  endOnDefects(log, 'agent')
  const { takeLock } = await import('#agent/run/lock.ts')
  const { lockPath } = await import('#agent/run/state-files.ts')
  const taken = await takeLock({ path: lockPath(options.stateDir), line: `netplane-agent of node ${options.node}, pid ${process.pid}` })
  if (taken.kind === 'taken') {
    log.error({ by: taken.by }, 'agent.already-running')
    return 1
  }
  using lock = taken.lock
  if (lock.squatter !== undefined) log.warn({ uid: lock.squatter }, 'agent.old-lock-held')
  const signal = stopSignal(log, 'agent')
  const { runAgent } = await import('#agent/run/run-agent.ts')
  try {
    await runAgent({ options, log, signal })
  } catch (thrown) {
    log.fatal({ error: thrown }, 'agent.failed')
    return 1
  }
  return 0
}

process.exitCode = await runMain({ name: 'netplane-agent', parse: parseOptions, run: main })

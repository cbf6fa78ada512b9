#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplane-agent: which command, and how it ends. Layer: agent.
 *
 * What a command needs is loaded when it is run: --version must not depend on the addon, and a warm start is quick. */
import { errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { HELP, parseOptions, type AgentOptions, type Command } from './run/options.ts'

/** Returns the exit code: 0 done, 1 failed, 2 wrong usage. */
async function main(argv: readonly string[]): Promise<number> {
  let command: Command
  try {
    command = parseOptions(argv)
  } catch (thrown) {
    process.stderr.write(`netplane-agent: ${errorText(thrown)}\nTry --help.\n`)
    return 2
  }
  switch (command.kind) {
    case 'help':
      process.stdout.write(HELP)
      return 0
    case 'version':
      process.stdout.write(`netplane-agent ${packageVersion()}\n`)
      return 0
    case 'print-desired': {
      const { printDesired } = await import('#agent/commands/print-desired.ts')
      return await printDesired(command.options)
    }
    case 'cleanup': {
      if (await mayNot()) return 1
      const { cleanupCommand } = await import('#agent/commands/cleanup.ts')
      return await cleanupCommand(command)
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
  await using log = createLog({ level: 'info', fields: { node: options.node } })
  const fatal = (thrown: unknown): void => {
    log.fatal({ error: thrown }, 'agent.failed')
    // nothing after a defect can be relied on; the data plane goes on without us
    process.exit(1)
  }
  process.on('uncaughtException', fatal)
  process.on('unhandledRejection', fatal)
  const { takeLock } = await import('#agent/run/lock.ts')
  const { lockPath } = await import('#agent/run/state-files.ts')
  const taken = await takeLock({ path: lockPath(options.stateDir), line: `netplane-agent of node ${options.node}, pid ${process.pid}` })
  if (taken.kind === 'taken') {
    log.error({ by: taken.by }, 'agent.already-running')
    return 1
  }
  using lock = taken.lock
  if (lock.squatter !== undefined) log.warn({ uid: lock.squatter }, 'agent.old-lock-held')
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'agent.stopping')
      stop.abort()
    })
  }
  const { runAgent } = await import('#agent/run/run-agent.ts')
  try {
    await runAgent({ options, log, signal: stop.signal })
  } catch (thrown) {
    log.fatal({ error: thrown }, 'agent.failed')
    return 1
  }
  return 0
}

process.exitCode = await main(process.argv.slice(2))

#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplane-operator: which command, and how it ends. Layer: operator. */
import { errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { HELP, parseOptions, type Command, type OperatorOptions } from './run/options.ts'

/** Returns the exit code: 0 done, 1 failed, 2 wrong usage. */
async function main(argv: readonly string[]): Promise<number> {
  let command: Command
  try {
    command = parseOptions(argv)
  } catch (thrown) {
    process.stderr.write(`netplane-operator: ${errorText(thrown)}\nTry --help.\n`)
    return 2
  }
  switch (command.kind) {
    case 'help':
      process.stdout.write(HELP)
      return 0
    case 'version':
      process.stdout.write(`netplane-operator ${packageVersion()}\n`)
      return 0
    case 'run':
      return await run(command.options)
  }
}

async function run(options: OperatorOptions): Promise<number> {
  const { createLog } = await import('#lib/obs/log.ts')
  await using log = createLog({ level: 'info' })
  const fatal = (thrown: unknown): void => {
    log.fatal({ error: thrown }, 'operator.failed')
    process.exit(1)
  }
  process.on('uncaughtException', fatal)
  process.on('unhandledRejection', fatal)
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'operator.stopping')
      stop.abort()
    })
  }
  const { runOperator } = await import('#operator/run/run-operator.ts')
  try {
    await runOperator({ options, log, signal: stop.signal })
  } catch (thrown) {
    log.fatal({ error: thrown }, 'operator.failed')
    return 1
  }
  return 0
}

process.exitCode = await main(process.argv.slice(2))

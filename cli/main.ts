#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplanectl: which command, and how it ends. Layer: cli.
 *
 * What reads the kernel is loaded when it is needed: help and version must not depend on the addon. */
import { errorCode, errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { readArgs, type Order } from './args.ts'
import { usage } from './commands.ts'
import type { CommandResult } from './command-result.ts'
import { write } from './standard-output.ts'

/** Returns the exit code: 0 done, 1 failed, 2 wrong usage. */
async function main(args: readonly string[]): Promise<number> {
  let order: Order
  try {
    order = readArgs(args)
  } catch (thrown) {
    process.stderr.write(`netplanectl: ${errorText(thrown)}\nTry --help.\n`)
    return 2
  }
  switch (order.kind) {
    case 'help':
      await write(usage())
      return 0
    case 'version':
      await write(`netplanectl ${packageVersion()}\n`)
      return 0
    case 'report': {
      const { reportTexts } = await import('#cli/run-report.ts')
      for await (const text of reportTexts(order)) await write(text)
      return 0
    }
    case 'explain': {
      const { explainCommand } = await import('#cli/explain/command.ts')
      return await print(await explainCommand(order))
    }
    case 'node status': {
      const { statusCommand } = await import('#cli/node/status.ts')
      return await print(await statusCommand(order))
    }
    case 'node bundle': {
      const { bundleCommand } = await import('#cli/node/bundle.ts')
      return await print(await bundleCommand(order))
    }
    case 'policy check': {
      const { checkCommand } = await import('#cli/policy/check.ts')
      return await print(await checkCommand(order))
    }
  }
}

async function print({ text, warnings, exitCode }: CommandResult): Promise<number> {
  process.stderr.write(warnings)
  await write(text)
  return exitCode
}

process.stdout.on('error', (error) => {
  if (errorCode(error) !== 'EPIPE') throw error
  // the reader has closed the pipe: it has the lines that it wants
  process.exit()
})

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (thrown) {
  process.stderr.write(`netplanectl: ${errorText(thrown)}\n`)
  process.exitCode = 1
}

#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplane-operator: which command, and how it ends. Layer: operator. */
import { runMain } from '#lib/base/os/program.ts'
import { parseOptions, type Command } from './run/options.ts'

async function run(command: Command): Promise<number> {
  if (command.kind === 'remove') {
    const { removeCommand } = await import('#operator/run/remove.ts')
    return await removeCommand(command)
  }
  if (command.kind === 'ask') {
    const { askCommand } = await import('#operator/switch/outside/ask-command.ts')
    return await askCommand(command)
  }
  const { options } = command
  const { runProgram } = await import('#lib/control/run-program.ts')
  return await runProgram('operator', async ({ log, signal }) => {
    const { runOperator } = await import('#operator/run/run-operator.ts')
    const { ENDPOINT_PATIENCE_MS, findServer } = await import('#lib/control/api-server.ts')
    await runOperator({
      options,
      server: (find) => findServer(options.kubeconfig, { ...find, giveUpMs: ENDPOINT_PATIENCE_MS }),
      log,
      signal,
    })
  })
}

process.exitCode = await runMain({ name: 'netplane-operator', parse: parseOptions, run })

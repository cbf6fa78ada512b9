#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplane-controllers: which command, and how it ends. Layer: controllers. */
import { runMain } from '#lib/base/os/program.ts'
import { parseOptions, type Command } from './run/options.ts'

async function run({ options }: Command): Promise<number> {
  const { runProgram } = await import('#lib/control/run-program.ts')
  return await runProgram('controllers', async ({ log, signal }) => {
    const { runControllers } = await import('#controllers/run/run-controllers.ts')
    const { ENDPOINT_PATIENCE_MS, findServer } = await import('#lib/control/api-server.ts')
    await runControllers({
      options,
      server: (find) => findServer(options.kubeconfig, { ...find, giveUpMs: ENDPOINT_PATIENCE_MS }),
      log,
      signal,
    })
  })
}

process.exitCode = await runMain({ name: 'netplane-controllers', parse: parseOptions, run })

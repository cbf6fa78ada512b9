#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplane-flows: its command line, and how it ends. Layer: flows. */
import { runMain } from '#lib/base/os/program.ts'
import { parseOptions, type Command } from './run/options.ts'

async function run({ options }: Command): Promise<number> {
  const { runProgram } = await import('#lib/control/run-program.ts')
  return await runProgram('flows', async ({ log, signal }) => {
    const { runFlows } = await import('#flows/run/run-flows.ts')
    await runFlows({ options, log, signal })
  })
}

process.exitCode = await runMain({ name: 'netplane-flows', parse: parseOptions, run })

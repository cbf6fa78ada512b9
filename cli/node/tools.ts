// SPDX-License-Identifier: Apache-2.0
/** Programs of the node whose output is part of a bundle. Layer: cli. */
import { toolRunner } from '#lib/base/os/run-tool.ts'

const run = toolRunner({ timeoutMs: 5000 })

/** What it prints. Throws when it is not installed, or fails. */
export async function toolText(...command: readonly string[]): Promise<string> {
  const output = await run(command)
  if (output === undefined) throw new Error(`there is no ${command[0] ?? ''} on this node`)
  return output
}

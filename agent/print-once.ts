// SPDX-License-Identifier: Apache-2.0
/** netplane-agent --print-desired. Layer: agent. */
import { rejectedText } from '#lib/base/result.ts'
import { desiredOnce } from './desired-once.ts'
import type { AgentOptions } from './options.ts'
import { printDesired } from './print.ts'

/** Reads the source once; what it refuses goes to standard error. Returns the exit code. */
export async function printOnce(options: Pick<AgentOptions, 'node' | 'resources'>): Promise<number> {
  const { desired, problems, missing, ruleNames } = await desiredOnce(options)
  for (const { place, rejected } of problems) process.stderr.write(`${place === undefined ? '' : `${place}: `}${rejectedText(rejected)}\n`)
  if (desired === undefined) {
    process.stderr.write(`netplane-agent: ${missing ?? ''}\n`)
    return 1
  }
  process.stdout.write(printDesired(desired, ruleNames))
  return 0
}

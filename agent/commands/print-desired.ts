// SPDX-License-Identifier: Apache-2.0
/** netplane-agent --print-desired. Layer: agent. */
import { ConfigError } from '#lib/base/errors.ts'
import { rejectedText } from '#lib/base/result.ts'
import { readDesired } from './read-desired.ts'
import type { AgentOptions } from '../run/options.ts'
import { formatDesired } from './format-desired.ts'

/** Reads the source once; what it refuses goes to standard error. Returns the exit code. */
export async function printDesired(options: Pick<AgentOptions, 'node' | 'origin' | 'config' | 'cni' | 'foreignNetwork'>): Promise<number> {
  const printed = await readDesired(options).catch(refusedSource)
  if (printed === undefined) return 1
  const { desired, problems, missing, ruleNames } = printed
  for (const { place, rejected } of problems) process.stderr.write(`${place === undefined ? '' : `${place}: `}${rejectedText(rejected)}\n`)
  if (desired === undefined) {
    process.stderr.write(`netplane-agent: ${missing ?? ''}\n`)
    return 1
  }
  process.stdout.write(formatDesired(desired, ruleNames))
  return 0
}

/** There is no source: says why. */
function refusedSource(thrown: unknown): undefined {
  if (!(thrown instanceof ConfigError)) throw thrown
  process.stderr.write(`netplane-agent: ${thrown.message}\n`)
}

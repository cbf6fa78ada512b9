// SPDX-License-Identifier: Apache-2.0
/** The benchmark's command line. Layer: bench. */
import { parseArgs } from 'node:util'
import { ConfigError, errorText } from '#lib/base/errors.ts'

export const PARTS = ['packet', 'control', 'path'] as const
export type Part = (typeof PARTS)[number]

export interface BenchOptions {
  readonly parts: readonly Part[]
  /** a minute or two instead of a quarter of an hour: fewer rounds, and no 10k services */
  readonly quick: boolean
  /** where the results go; undefined: bench/results/latest.json, and only after a whole run */
  readonly out: string | undefined
}

export const HELP = `bench: measures packets, control plane and paths, and compares them with the goals

  --quick        fewer rounds, smaller clusters: one to two minutes
  --only PART    packet, control or path; may be given again
  --out FILE     where to write the results (default: bench/results/latest.json after a whole run, otherwise nowhere)
`

/** Throws ConfigError. */
export function parseOptions(argv: readonly string[]): BenchOptions | 'help' {
  const { quick, only, out, help } = parseFlags(argv)
  if (help === true) return 'help'
  const parts = (only ?? PARTS).map((name) => {
    const part = PARTS.find((candidate) => candidate === name)
    if (part === undefined) throw new ConfigError('--only', `there is no part ${JSON.stringify(name)}: ${PARTS.join(', ')}`)
    return part
  })
  return { parts, quick: quick ?? false, out }
}

function parseFlags(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      strict: true,
      options: {
        quick: { type: 'boolean' },
        only: { type: 'string', multiple: true },
        out: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (thrown) {
    throw new ConfigError('command line', errorText(thrown), thrown)
  }
}

// SPDX-License-Identifier: Apache-2.0
/** The benchmark's command line. Layer: bench. */
import { parseArgs } from 'node:util'
import { ConfigError, errorText } from '#lib/base/errors.ts'

export const PARTS = ['packet', 'control', 'path', 'loss'] as const
export type Part = (typeof PARTS)[number]

export interface BenchOptions {
  readonly parts: readonly Part[]
  /** a minute or two instead of a quarter of an hour: fewer rounds, and nothing of 10k */
  readonly quick: boolean
  /** how often agents are killed; undefined: 100, or 3 when quick */
  readonly runs: number | undefined
  /** where the results go; undefined: bench/results/latest.json, and only after a whole run */
  readonly out: string | undefined
}

export const HELP = `bench: measures packets, control plane, paths and losses, and compares them with the goals

  --quick        fewer rounds, smaller clusters, no growth of tables, no change of proxy: two minutes
  --only PART    packet, control, path or loss; may be given again
  --runs N       how often the loss part kills agents (default 100; 3 with --quick)
  --out FILE     where to write the results (default: bench/results/latest.json after a whole run, otherwise nowhere);
                 with --only loss the file keeps everything else
`

/** Throws ConfigError. */
export function parseOptions(argv: readonly string[]): BenchOptions | 'help' {
  const { quick, only, runs, out, help } = parseFlags(argv)
  if (help === true) return 'help'
  const parts = (only ?? PARTS).map((name) => {
    const part = PARTS.find((candidate) => candidate === name)
    if (part === undefined) throw new ConfigError('--only', `there is no part ${JSON.stringify(name)}: ${PARTS.join(', ')}`)
    return part
  })
  if (runs !== undefined && !/^[1-9]\d{0,3}$/.test(runs)) throw new ConfigError('--runs', `${JSON.stringify(runs)} is no count`)
  return { parts, quick: quick ?? false, runs: runs === undefined ? undefined : Number(runs), out }
}

function parseFlags(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      strict: true,
      options: {
        quick: { type: 'boolean' },
        only: { type: 'string', multiple: true },
        runs: { type: 'string' },
        out: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (thrown) {
    throw new ConfigError('command line', errorText(thrown), thrown)
  }
}

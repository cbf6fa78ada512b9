// SPDX-License-Identifier: Apache-2.0
/** What our programs do alike between their command line and their exit code. Layer: lib/base. */
import { errorText } from '../errors.ts'
import { packageVersion } from './package.ts'

/** Commands that every program has. */
export type Told = { readonly kind: 'help'; readonly text: string } | { readonly kind: 'version' }

export interface Program<C extends { readonly kind: string }> {
  /** "netplane-agent" */
  readonly name: string
  /** throws what is wrong with the command line */
  readonly parse: (argv: readonly string[]) => C | Told
  /** returns the exit code: 0 done, 1 failed */
  readonly run: (command: C) => Promise<number>
}

/** Returns the exit code, 2 for wrong usage. */
export async function runMain<C extends { readonly kind: string }>({ name, parse, run }: Program<C>): Promise<number> {
  let command: C | Told
  try {
    command = parse(process.argv.slice(2))
  } catch (thrown) {
    process.stderr.write(`${name}: ${errorText(thrown)}\nTry --help.\n`)
    return 2
  }
  if (!isTold(command)) return await run(command)
  process.stdout.write(command.kind === 'help' ? command.text : `${name} ${packageVersion()}\n`)
  return 0
}

function isTold(command: { readonly kind: string }): command is Told {
  return command.kind === 'help' || command.kind === 'version'
}

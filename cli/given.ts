// SPDX-License-Identifier: Apache-2.0
/** What stands on a command line, by the flags that its command has. Layer: cli (pure). */
import { parseArgs } from 'node:util'
import { ConfigError, errorText } from '#lib/base/errors.ts'

export interface Flag {
  readonly name: string
  /** one letter */
  readonly short?: string
  /** what follows it: "DIR"; undefined: nothing */
  readonly value?: string
  /** it may be given several times */
  readonly multiple?: true
  readonly about: string
}

export interface Given {
  /** what is no flag */
  readonly words: readonly string[]
  has(flag: string): boolean
  /** of one that is given several times the last */
  readonly text: (flag: string) => string | undefined
  readonly texts: (flag: string) => readonly string[]
  /** flags as they stand, for those whose order says something; empty values of those that take none */
  readonly inOrder: readonly (readonly [flag: string, value: string])[]
}

export interface Understood {
  /** for messages */
  readonly name: string
  readonly flags: readonly Flag[]
  /** what it takes besides; undefined: nothing */
  readonly words?: string
}

/** Throws ConfigError for what is not known. */
export function readGiven({ name, flags, words }: Understood, args: readonly string[]): Given {
  const options = flags.map((flag) => {
    const type = flag.value === undefined ? ('boolean' as const) : ('string' as const)
    return [flag.name, { type, multiple: flag.multiple === true, ...(flag.short === undefined ? {} : { short: flag.short }) }] as const
  })
  try {
    const parsed = parseArgs({
      args: args.map(joined),
      options: Object.fromEntries(options),
      allowPositionals: words !== undefined,
      tokens: true,
    })
    const values = new Map<string, readonly unknown[]>(Object.entries(parsed.values).map(([flag, value]) => [flag, [value].flat()]))
    const texts = (flag: string): readonly string[] => (values.get(flag) ?? []).filter((value) => typeof value === 'string')
    const inOrder = parsed.tokens.flatMap((token) => (token.kind === 'option' ? [[token.name, token.value ?? ''] as const] : []))
    return { inOrder, words: parsed.positionals, has: (flag) => values.has(flag), text: (flag) => texts(flag).at(-1), texts }
  } catch (thrown) {
    throw new ConfigError(name, errorText(thrown), thrown)
  }
}

/** "-o=yaml" as "-oyaml": other clients take both. */
function joined(argument: string): string {
  return argument.replace(/^-([A-Za-z])=/, '-$1')
}

/** In ms, of --timeout. Throws ConfigError. */
export function secondsOf(given: Given, usual: number): number {
  const text = given.text('timeout')
  if (text === undefined) return usual * 1000
  if (!/^[1-9][0-9]{0,4}$/.test(text)) throw new ConfigError('--timeout', `${JSON.stringify(text)} is no number of seconds`)
  return Number(text) * 1000
}

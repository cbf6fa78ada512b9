// SPDX-License-Identifier: Apache-2.0
/** Command line arguments of netplanectl. Layer: cli (pure). */
import { parseArgs } from 'node:util'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import { COMMON, commands, type Command } from './commands.ts'
import { readFilter, type Filter } from './filter.ts'

export interface ReportOrder {
  readonly kind: 'report'
  readonly command: Command
  readonly pins: string
  readonly json: boolean
  readonly filter: Filter
  readonly all: boolean
}

export type Order = { readonly kind: 'help' } | { readonly kind: 'version' } | ReportOrder

const HELP = new Set<string | undefined>([undefined, 'help', '--help', '-h'])
const VERSION = new Set<string | undefined>(['version', '--version'])

/** Throws ConfigError for what is not known. */
export function readArgs(args: readonly string[]): Order {
  if (HELP.has(args[0])) return { kind: 'help' }
  if (VERSION.has(args[0])) return { kind: 'version' }
  const words = args.slice(0, 2).join(' ')
  const command = commands.find(({ name }) => name === words)
  if (command === undefined)
    throw new ConfigError('command', `${JSON.stringify(words)} is none: ${commands.map(({ name }) => name).join(', ')}, version`)
  const values = parse(command, args.slice(2))
  if (values.has('help')) return { kind: 'help' }
  const text = (flag: string): string | undefined => {
    const value = values.get(flag)
    return typeof value === 'string' ? value : undefined
  }
  return {
    kind: 'report',
    command,
    pins: text('pins') ?? DEFAULT_PIN_DIR,
    json: values.has('json'),
    filter: readFilter(text),
    all: values.has('all'),
  }
}

/** By name, those that are given. */
function parse({ name, flags }: Command, args: readonly string[]): ReadonlyMap<string, unknown> {
  const options = [...flags, ...COMMON].map((flag) => [flag.name, { type: flag.value === undefined ? 'boolean' : 'string' }] as const)
  try {
    return new Map<string, unknown>(Object.entries(parseArgs({ args: [...args], options: Object.fromEntries(options) }).values))
  } catch (thrown) {
    throw new ConfigError(name, errorText(thrown), thrown)
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Command line arguments of netplane-lab. Layer: lab (pure). */
import { parseArgs } from 'node:util'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'

export interface Arguments {
  readonly values: { text(name: string): string | undefined; flag(name: string): boolean }
  readonly positionals: readonly string[]
  /** everything after -- */
  readonly command: readonly string[]
}

/** --name and --json are always there. Throws ConfigError for what is not known. */
export function readArgs(args: readonly string[], known: Readonly<Record<string, 'text' | 'flag'>>): Arguments {
  const end = args.indexOf('--')
  const own = end < 0 ? args : args.slice(0, end)
  const options = Object.entries({ name: 'text', json: 'flag', ...known }).map(([name, kind]) => {
    const type = kind === 'text' ? ('string' as const) : ('boolean' as const)
    return [name, name === 'follow' ? { type, short: 'f' } : { type }] as const
  })
  try {
    const parsed = parseArgs({ args: [...own], options: Object.fromEntries(options), allowPositionals: true })
    const value = (name: string): unknown => (isObject(parsed.values) ? parsed.values[name] : undefined)
    const text = (name: string): string | undefined => {
      const found = value(name)
      return typeof found === 'string' ? found : undefined
    }
    return {
      values: { text, flag: (name) => value(name) === true },
      positionals: parsed.positionals,
      command: end < 0 ? [] : args.slice(end + 1),
    }
  } catch (thrown) {
    throw new ConfigError('arguments', errorText(thrown), thrown)
  }
}

/** "a,b" → ["a", "b"] */
export function list(text: string | undefined): string[] | undefined {
  return text?.split(',').filter((word) => word !== '')
}

/** A positive whole number; throws ConfigError. */
export function count(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new ConfigError(field, `not a positive whole number: ${JSON.stringify(text)}`)
  return Number(text)
}

/** A command line in words apart, or as a JSON list when words have spaces; throws ConfigError. */
export function words(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined
  if (!text.startsWith('[')) return text.split(/\s+/).filter((word) => word !== '')
  const parsed: unknown = JSON.parse(text)
  if (!Array.isArray(parsed)) throw new ConfigError('--agent-command', 'not a list')
  return parsed.map(String)
}

// SPDX-License-Identifier: Apache-2.0
/** Flags of a command line. Layer: lib/base. */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { ConfigError, errorText } from './errors.ts'
import { isPort, type Port } from './ip.ts'

type Flags = NonNullable<ParseArgsConfig['options']>

/** Throws ConfigError for a flag that is not among `options`, has no value, or for a word without a flag. */
export function parseFlags<const T extends Flags>(argv: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...argv], strict: true, allowPositionals: false, options }).values
  } catch (thrown) {
    throw new ConfigError('command line', errorText(thrown), thrown)
  }
}

/** 0: off. undefined: the flag was not given. Throws ConfigError that names the flag. */
export function portOf(flag: string, text: string | undefined): Port | 0 | undefined {
  if (text === undefined) return undefined
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (value === 0) return 0
  if (!isPort(value)) throw new ConfigError(flag, `${JSON.stringify(text)} is no port (0..65535)`)
  return value
}

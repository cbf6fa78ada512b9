// SPDX-License-Identifier: Apache-2.0
/** Runs a tool of this machine to its end. Layer: testkit. */
import { execFile } from 'node:child_process'

export interface CommandOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** milliseconds; 5 minutes when absent */
  readonly timeout?: number
}

/** What it wrote on standard output. Throws with its standard error when it fails, and by name when it is missing. */
export function command(program: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const settings = {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { ...process.env, LC_ALL: 'C', ...options.env },
    timeout: options.timeout ?? 300_000,
    maxBuffer: 64 << 20,
  }
  execFile(program, args, settings, (error, stdout, stderr) => {
    if (error === null) resolve(stdout)
    else if (error.code === 'ENOENT') reject(new Error(`${program} is not installed (or ${options.cwd ?? 'its directory'} is missing)`))
    else
      reject(
        new Error(
          `${program} ${args.join(' ')}: ${error.killed ? 'timed out' : `exit ${error.code}`}\n${stdout.slice(-2000)}${stderr.slice(-4000)}`,
        ),
      )
  })
  return promise
}

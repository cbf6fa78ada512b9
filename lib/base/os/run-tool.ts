// SPDX-License-Identifier: Apache-2.0
/** Programs of the node that may or may not be there, run to their end. Layer: lib/base. */
import { execFile } from 'node:child_process'
import { CommandError, errorCode } from '../errors.ts'

/** Standard output of a command; undefined when there is no such program. Throws CommandError when it fails. */
export type RunTool = (command: readonly string[], input?: string) => Promise<string | undefined>

const MAX_OUTPUT = 256 << 20

export function toolRunner({ timeoutMs }: { readonly timeoutMs: number }): RunTool {
  return (command, input = '') => {
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
    const [program = '', ...args] = command
    const child = execFile(program, args, { timeout: timeoutMs, maxBuffer: MAX_OUTPUT }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else if (errorCode(error) === 'ENOENT') resolve(undefined)
      else reject(new CommandError({ command: command.join(' '), status: typeof error.code === 'number' ? error.code : undefined, stderr }))
    })
    // one that ends without reading is not our error
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
    return promise
  }
}

// SPDX-License-Identifier: Apache-2.0
/** Programs that change something elsewhere, and end when we do: also when we are killed. Layer: lib/base. */
import { execFile } from 'node:child_process'
import { CommandError } from '../errors.ts'

export interface BoundRun {
  /** it is asked to end then */
  readonly timeoutMs: number
  /** the same */
  readonly signal: AbortSignal
}

/** Its standard input is open for as long as we live: once that ends, the program is asked to end, as by a person. */
const SCRIPT = `
exec 3<&0 </dev/null
"$@" 3<&- &
program=$!
{ read -r _ <&3; kill "$program"; } >/dev/null 2>&1 &
watch=$!
trap 'kill "$program"' TERM
wait "$program"
status=$?
kill "$watch" 2>/dev/null
exit "$status"
`
/** Of a shell that does not find a program. */
const NO_PROGRAM = 127
const MAX_OUTPUT = 16 << 20

/** Standard output; undefined when there is no such program. Throws CommandError when it fails, or is asked to end. */
export function runBound(command: readonly string[], { timeoutMs, signal }: BoundRun): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
  const options = { timeout: timeoutMs, signal, maxBuffer: MAX_OUTPUT }
  const child = execFile('/bin/sh', ['-c', SCRIPT, 'sh', ...command], options, (error, stdout, stderr) => {
    if (error === null) resolve(stdout)
    else if (error.code === NO_PROGRAM) resolve(undefined)
    else reject(new CommandError({ command: command.join(' '), status: typeof error.code === 'number' ? error.code : undefined, stderr }))
  })
  // a program that has ended is not our error
  child.stdin?.on('error', () => undefined)
  return promise
}

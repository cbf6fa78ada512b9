// SPDX-License-Identifier: Apache-2.0
/** Runs one child process to its end. Layer: lab. */
import { spawn } from 'node:child_process'
import { CommandError } from '#lib/base/errors.ts'
import { joinCgroup } from './launch.ts'
import { longer } from '../slowness.ts'

export interface Outcome {
  /** undefined when a signal ended it */
  readonly status: number | undefined
  readonly stdout: string
  readonly stderr: string
  /** it ran out of time and was killed */
  readonly timedOut: boolean
}

export interface CommandOptions {
  readonly input?: string
  /** default 60,000 ms; then SIGKILL */
  readonly timeoutMs?: number
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
}

/** Never rejects for an exit code; does when the program cannot be started or the signal aborts. */
export function runCommand(command: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: options.env ?? process.env,
    signal: options.signal,
    killSignal: 'SIGKILL',
    // a terminal's Ctrl-C is for us: what we do about it may need commands that live on
    detached: true,
  })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    child.kill('SIGKILL')
  }, timeLimit(options))
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  // a child that ends without reading its input is not our error
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  child.on('error', (error) => {
    clearTimeout(timer)
    reject(error)
  })
  child.on('close', (code) => {
    clearTimeout(timer)
    resolve({ status: code ?? undefined, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString(), timedOut })
  })
  return promise
}

/** Its standard output; throws CommandError when it ends with anything but 0. */
export async function mustRun(command: readonly string[], options: CommandOptions = {}): Promise<string> {
  const outcome = await runCommand(command, options)
  if (outcome.status !== 0) {
    const stderr = outcome.timedOut ? `no end after ${timeLimit(options)} ms; ${outcome.stderr}` : outcome.stderr
    throw new CommandError({ command: command.join(' '), status: outcome.status, stderr })
  }
  return outcome.stdout
}

function timeLimit({ timeoutMs = 60_000 }: CommandOptions): number {
  return longer(timeoutMs)
}

/** {@link mustRun}, or that in a certain place. */
export type Run = (command: readonly string[], options?: CommandOptions) => Promise<string>

/** {@link mustRun} with every process in this cgroup, where `down` finds it when its parent was killed. */
export function runInCgroup(cgroup: string): Run {
  return (command, options) => mustRun(joinCgroup(cgroup, command), options)
}

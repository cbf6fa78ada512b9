// SPDX-License-Identifier: Apache-2.0
/** netplane-flows as a process. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { join } from 'node:path'

export interface Running {
  readonly grpcPort: number
  readonly httpPort: number
  /** resolves with the exit code, or the signal that ended it */
  readonly stop: (signal: 'SIGTERM' | 'SIGKILL') => Promise<number | string | null>
}

const MAIN = join(import.meta.dirname, '../../../flows/main.ts')

/** Resolves when it listens. */
export async function startProgram(data: string): Promise<Running> {
  const ports = ['--grpc-port', '0', '--http-port', '0', '--health-port', '0']
  const child = spawn(process.execPath, ['--conditions=source', MAIN, '--data', data, ...ports], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<number | string | null>((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code)))
  const listening = await Promise.race([portsOf(child), ended])
  if (typeof listening !== 'object' || listening === null) throw new Error(`it ended with ${String(listening)}`)
  return {
    ...listening,
    stop: async (signal) => {
      child.kill(signal)
      return await ended
    },
  }
}

async function portsOf(child: ChildProcess): Promise<Pick<Running, 'grpcPort' | 'httpPort'> | undefined> {
  if (child.stdout === null) return undefined
  const lines: string[] = []
  return await new Promise((resolve) => {
    createInterface({ input: child.stdout ?? process.stdin }).on('line', (line) => {
      lines.push(line)
      const told: unknown = JSON.parse(line)
      if (isListening(told)) resolve({ grpcPort: told.grpcPort, httpPort: told.httpPort ?? 0 })
    })
  })
}

function isListening(told: unknown): told is { readonly grpcPort: number; readonly httpPort?: number } {
  return typeof told === 'object' && told !== null && 'event' in told && told.event === 'flows.listening' && 'grpcPort' in told
}

// SPDX-License-Identifier: Apache-2.0
/** Programs that tests run: to their end, and the operator. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'

export interface Ended {
  /** null: by a signal */
  readonly code: number | null
  /** of both streams */
  readonly output: string
}

const MOST_MS = 180_000

export function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], timeout: MOST_MS })
    const parts: Buffer[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => parts.push(part))
    child.on('error', reject)
    child.on('close', (code) => {
      resolve({ code, output: Buffer.concat(parts).toString() })
    })
  })
}

export const OPERATOR_PROGRAM = join(packageRoot(), 'dist/operator/main.js')

/** Of Node, as the image has them for the operator. */
const OPERATOR_FLAGS = readFileSync(join(packageRoot(), 'scripts/image/netplane-operator'), 'utf8').match(/ --[a-z-]+(=\d+)?(?= )/g) ?? []

/** The operator as a process, with its log in a file, which begins anew. */
export function startOperator(kubeconfig: string, log: string, ...more: readonly string[]): ChildProcess {
  const flags = OPERATOR_FLAGS.map((flag) => flag.trim())
  return spawn(process.execPath, [...flags, OPERATOR_PROGRAM, '--kubeconfig', kubeconfig, '--health-port', '0', ...more], {
    stdio: ['ignore', openSync(log, 'w'), 'inherit'],
  })
}

/** Resolves when it has ended. */
export async function stopProcess(child: ChildProcess | undefined, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

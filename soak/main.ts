#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** `make soak`: random changes under live traffic, then everything is compared; ten minutes of each form. Layer: soak.
 *
 * --minutes M (or MINUTES=M), --seed S (or SEED=S): the same steps again; --form NAME (or FORM=NAME): that one
 * alone. Exit code 0 when everything held. */
import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ConfigError } from '#lib/base/errors.ts'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'

const HERE = fileURLToPath(import.meta.url)
/** What is put in front of each: objects of an API server are asked for from a network namespace of our own, with a
 * veth to the lab. */
const FORMS: Readonly<Record<string, readonly string[]>> = { manifests: [], pods: ['unshare', '--net'] }

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' }, form: { type: 'string' } } })
const minutes = Number(values.minutes ?? process.env['MINUTES'] ?? 10)
const seed = Number(values.seed ?? process.env['SEED'] ?? Math.floor(Math.random() * 0x1_0000_0000))
const form = values.form ?? process.env['FORM']
const ended = new AbortController()
// the sender has signalled our children as well, or means us alone: either way they take their labs down
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => ended.abort())

interface Count {
  readonly passed: number
  readonly failed: number
}

/** What it says is shown as it comes. */
async function soak(name: string, isolation: readonly string[]): Promise<Count> {
  const kept = join(packageRoot(), 'build/soak', name)
  rmSync(kept, { recursive: true, force: true })
  mkdirSync(kept, { recursive: true })
  const part = nodeCommand(join(dirname(HERE), `scenario-process${extname(HERE)}`))
  const [program, ...args] = [...isolation, ...part, name, String(minutes), String(seed), kept]
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  ended.signal.addEventListener('abort', () => child.kill('SIGTERM'))
  const closed = new Promise<void>((resolve) => child.on('error', () => resolve()).on('close', () => resolve()))
  let last = ''
  for await (const line of createInterface({ input: child.stdout })) {
    process.stdout.write(`${line}\n`)
    last = line
  }
  await closed
  const [, passed, failed] = /: (\d+) passed, (\d+) failed$/.exec(last) ?? []
  return passed === undefined ? { passed: 0, failed: 1 } : { passed: Number(passed), failed: Number(failed) }
}

async function main(): Promise<number> {
  const chosen = Object.entries(FORMS).filter(([name]) => form === undefined || form === name)
  if (chosen.length === 0) throw new ConfigError('--form', `must be one of ${Object.keys(FORMS).join(', ')}`)
  let sum: Count = { passed: 0, failed: 0 }
  for (const [name, isolation] of chosen) {
    if (ended.signal.aborted) break
    const count = await soak(name, isolation)
    if (count.failed > 0)
      process.stdout.write(
        `the same again: make soak FORM=${name} SEED=${seed} MINUTES=${minutes}; steps and logs are in build/soak/${name}\n`,
      )
    sum = { passed: sum.passed + count.passed, failed: sum.failed + count.failed }
  }
  process.stdout.write(`soak: ${sum.passed} passed, ${sum.failed} failed\n`)
  return sum.failed === 0 && !ended.signal.aborted ? 0 : 1
}

process.exitCode = await main()

// SPDX-License-Identifier: Apache-2.0
/** Runs a test file again and again while it is disturbed, and says how often each of its tests passed:
 * `make steady F=test/… N=20 [T='part of a title']`. Needs root. Layer: test. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../soak/random.ts'
import { runVitest } from './runner/commands.ts'
import { testsOf } from './runner/failures.ts'
import { kindOf, type Kind } from './runner/kinds.ts'
import { RunGroup, runGroupObstacle } from './runner/run-group.ts'
import { isSteady, tallyOf, disturbancesOf, type Run, type Way } from './runner/tally.ts'
import { SEED } from './support/steady/seed.ts'

const USAGE = "usage: make steady F=test/… [N=20] [T='part of a title'], a test file or a folder of one kind"
const LOOP = ['sh', '-c', 'while :; do :; done']
const SLOW = 0.5
/** What a machine is known to take from us at once. */
const PAUSE_MS = 1500
/** between two of them */
const LEAST_MS = 200
const SPAN_MS = 4000

interface Asked {
  readonly path: string
  readonly kind: Kind
  readonly folder: string
  readonly stop: AbortSignal
}

/** Until `signal` is aborted. */
async function halt(group: RunGroup, random: Random, signal: AbortSignal): Promise<void> {
  const pause = async (ms: number): Promise<void> => await sleep(ms, undefined, { signal }).catch(() => undefined)
  while (!signal.aborted) {
    await pause(LEAST_MS + random.below(SPAN_MS))
    group.stop()
    await pause(PAUSE_MS)
    group.resume()
  }
}

async function runOnce({ path, kind, folder, stop }: Asked, way: Way, random: Random): Promise<Run> {
  await using group = new RunGroup()
  const [first = '', ...rest] = [...group.prefix, ...LOOP]
  if (way === 'busy') for (let loops = 0; loops < 2; loops++) spawn(first, rest, { stdio: 'ignore' })
  if (way === 'slow') group.limit(SLOW)
  const over = new AbortController()
  const halting = way === 'halting' ? halt(group, random, over.signal) : undefined
  const prefix = [...group.prefix, ...kind.prefix]
  const options = { project: kind.project, folder, prefix, only: [path], title: process.env['T'], limit: stop }
  const { output, report } = await runVitest(() => undefined, options)
  over.abort()
  await halting
  return { way, tests: report === undefined ? [{ name: path, error: output.trim().slice(-1000) }] : testsOf(report, process.cwd()) }
}

async function runAll(asked: Asked, count: number): Promise<readonly Run[]> {
  const random = new Random(SEED)
  const runs: Run[] = []
  for (const way of disturbancesOf(count, asked.kind.project)) {
    if (asked.stop.aborted) break
    const began = performance.now()
    const run = await runOnce(asked, way, random)
    runs.push(run)
    const failed = run.tests.filter(({ error }) => error !== undefined).length
    const seconds = ((performance.now() - began) / 1000).toFixed(0)
    console.log(`${runs.length}/${count} ${way}: ${run.tests.length - failed} passed, ${failed} failed in ${seconds} s`)
  }
  return runs
}

/** The exit code. */
async function main([path, count = '20']: readonly string[]): Promise<number> {
  const isAsked = path !== undefined && /^(\.\/)?test\//.test(path) && /^[1-9]\d{0,3}$/.test(count)
  const obstacle = isAsked ? runGroupObstacle() : USAGE
  if (path === undefined || obstacle !== undefined) {
    console.error(obstacle)
    return 2
  }
  const kind = kindOf(path)
  const built = spawnSync('make', ['--silent', '--jobs=2', '--no-print-directory', ...kind.targets], { stdio: 'inherit' }).status
  if (built !== 0) return built ?? 1
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      stop.abort()
    })
  const folder = mkdtempSync(join(tmpdir(), 'netplane-steady-'))
  try {
    const runs = await runAll({ path, kind, folder, stop: stop.signal }, Number(count))
    for (const line of tallyOf(runs)) console.log(line)
    return isSteady(runs) && !stop.signal.aborted ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}

process.exitCode = await main(process.argv.slice(2))

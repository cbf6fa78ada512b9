// SPDX-License-Identifier: Apache-2.0
/** Runs the kinds of tests one after another and adds them up; `make test` is this. Layer: test.
 *
 * `run.ts [lint|unit|kernel|lab|vm|bench …]`: these only. The last line is `N passed, M failed, K skipped`. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface Count {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

interface Stage {
  readonly name: string
  /** why it cannot run here; then its absence counts as one skip */
  readonly obstacle?: string | undefined
  run(folder: string): Promise<Count>
}

const FAILED: Count = { passed: 0, failed: 1, skipped: 0 }
const node = process.execPath
const isRoot = process.getuid?.() === 0
const needsRoot = isRoot ? undefined : 'needs root'
/** An own network, mount and cgroup view with an own bpffs: nothing touches the machine. */
const inOwnNamespaces = [
  'unshare',
  '--net',
  '--mount',
  '--',
  'sh',
  '-c',
  'ip link set lo up && mount -t bpf bpf /sys/fs/bpf && exec "$@"',
  'sh',
]

const stages: readonly Stage[] = [
  { name: 'lint', run: () => command(['make', '--no-print-directory', 'lint']) },
  { name: 'unit', run: (folder) => vitest({ project: 'unit', folder, prefix: [] }) },
  { name: 'kernel', obstacle: needsRoot, run: (folder) => vitest({ project: 'kernel', folder, prefix: inOwnNamespaces }) },
  { name: 'lab', obstacle: needsRoot, run: (folder) => vitest({ project: 'lab', folder, prefix: [] }) },
  { name: 'vm', obstacle: needsRoot, run: () => command(['test/kernel/run']) },
  { name: 'demo', obstacle: needsRoot, run: () => command([node, 'dist/demo/main.js']) },
  { name: 'bench', obstacle: needsRoot, run: () => command([node, 'dist/bench/main.js', '--quick']) },
]

async function main(): Promise<number> {
  const wanted = process.argv.slice(2)
  const chosen = wanted.length === 0 ? stages : stages.filter((stage) => wanted.includes(stage.name))
  if (chosen.length !== (wanted.length || stages.length))
    throw new Error(`no such stage; there are ${stages.map((stage) => stage.name).join(', ')}`)
  const folder = mkdtempSync(join(tmpdir(), 'netplane-test-'))
  const total = { passed: 0, failed: 0, skipped: 0 }
  try {
    for (const stage of chosen) {
      const count = await runStage(stage, folder)
      total.passed += count.passed
      total.failed += count.failed
      total.skipped += count.skipped
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
  const skippedInCi = process.env['CI'] === 'true' && total.skipped > 0
  if (skippedInCi) console.error('a skipped test is a failure in CI')
  return total.failed === 0 && !skippedInCi ? 0 : 1
}

async function runStage(stage: Stage, folder: string): Promise<Count> {
  if (stage.obstacle !== undefined) {
    console.log(`\n== ${stage.name}: skipped, ${stage.obstacle}`)
    return { passed: 0, failed: 0, skipped: 1 }
  }
  console.log(`\n== ${stage.name}`)
  const began = performance.now()
  const count = await stage.run(folder)
  console.log(
    `== ${stage.name}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped in ${((performance.now() - began) / 1000).toFixed(0)} s`,
  )
  return count
}

async function vitest(options: { readonly project: string; readonly folder: string; readonly prefix: readonly string[] }): Promise<Count> {
  const output = join(options.folder, `${options.project}.json`)
  const line = [...options.prefix, node, '--conditions=source', 'node_modules/vitest/vitest.mjs', 'run', '--project', options.project]
  const { code } = await spawned([...line, '--reporter=dot', '--reporter=json', `--outputFile.json=${output}`])
  const count = readCount(output)
  // a file that could not even start has no failed test of its own
  return code !== 0 && count.failed === 0 ? { ...count, failed: 1 } : count
}

function readCount(path: string): Count {
  try {
    const report: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof report !== 'object' || report === null) return FAILED
    const field = (name: string): number => {
      const value: unknown = Reflect.get(report, name)
      return typeof value === 'number' ? value : 0
    }
    return { passed: field('numPassedTests'), failed: field('numFailedTests'), skipped: field('numPendingTests') + field('numTodoTests') }
  } catch {
    return FAILED
  }
}

/** A command that is one test, or that counts for itself in a last line `N passed, M failed`. */
async function command(line: readonly string[]): Promise<Count> {
  const { code, tail } = await spawned(line)
  const counted = /(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/.exec(tail)
  if (counted === null) return code === 0 ? { passed: 1, failed: 0, skipped: 0 } : FAILED
  const count = { passed: Number(counted[1]), failed: Number(counted[2]), skipped: Number(counted[3] ?? 0) }
  return code !== 0 && count.failed === 0 ? { ...count, failed: 1 } : count
}

function spawned(line: readonly string[]): Promise<{ readonly code: number; readonly tail: string }> {
  const [file = '', ...args] = line
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let tail = ''
    child.stdout.on('data', (chunk: Buffer) => {
      process.stdout.write(chunk)
      tail = (tail + chunk.toString()).slice(-400)
    })
    child.on('error', (error) => {
      console.error(error.message)
      resolve({ code: 1, tail })
    })
    child.on('close', (code) => resolve({ code: code ?? 1, tail }))
  })
}

process.exitCode = await main()
